"""The leases of responses, and those of conversations, which `ConversationLeases` describes.

Neither the queue nor a worker can be relied on: a message may be lost or arrive twice, and a worker may die. So the
lease record, in the response's partition, has all that decides who runs a response. It is made by the first write to
it. No worker releases it: the response then has an ending, or the worker lets the lease lapse for the next attempt. The
states of a background response:

    state       attributes              acquire                  renew            cancel   claim_requeue  claim_waiting
    queued      no record, or           attempt 1                -                marked   no             once a period
                attempts = 0
    running     lease_id, end ahead     409 `response_running`   new end          marked   (not called)   no
    lapsed      lease_id, end passed,   next attempt             the holder's     marked   once           no
                attempts < 3                                     only
    exhausted   the same, 3 attempts    409                      the holder's     marked   (not called)   no
                                        `attempts_exhausted`     only
    cancelled   cancelled_at            409                      new end; shows   marked   no             no
                                        `response_cancelled`     `cancelled_at`   again
    deleted     sealed_at               404                      Interrupted      404      no             no

- `claim_requeue` lets one of many readers send the message again after a worker died. `claim_waiting` does so for a
  response whose message may be lost.
- The worker reads the record once a second, and ends a response that was cancelled.
- The lease of a foreground response has no id, because nobody continues it: `extend` writes only its end, and the
  response itself has the first end (`ResponseHeader.until`). It is refused once the response is cancelled or deleted.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.session_budgets import SessionLedger
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.records import is_live
from stint.store.session_ledgers import count_logged, find_ledger
from stint.store.table import LIVE, NEW, Table

MAX_ATTEMPTS = 3
"""Maximum attempts to run a response, as many as the queue's deliveries of a message."""

RECORD_SECONDS = 86_400
"""Seconds after its last renewal for which the lease record of a foreground response stays."""

# This also holds if there is no record yet, which the write then makes.
UNCANCELLED = "attribute_not_exists(sealed_at) AND attribute_not_exists(cancelled_at)"
# The lease that the reader has seen, and that no other reader has claimed. A renewal changes its end.
UNCLAIMED = (
    f"{UNCANCELLED} AND lease_id = :old_id AND lease_until = :old_until"
    " AND (attribute_not_exists(requeued_for) OR requeued_for <> :old_id)"
)
# No worker has begun, and no other caller has claimed the response in this period.
WAITING = (
    f"{UNCANCELLED} AND attribute_not_exists(lease_id) AND (attribute_not_exists(attempts) OR attempts = :zero)"
    " AND (attribute_not_exists(requeued_at) OR requeued_at <= :before)"
)


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The state in the lease record. All fields are None or 0 if no worker has run the response so far."""

    attempts: int = 0
    """How often a worker has acquired the lease."""
    lease_id: str | None = None
    lease_until: int | None = None
    """The end of the lease, in milliseconds since 1970."""
    cancelled_at: int | None = None
    """In seconds since 1970."""
    requeued_at: int | None = None
    """When the response was last queued again before any attempt, in seconds since 1970."""

    @property
    def held(self) -> bool:
        return self.lease_until is not None and self.lease_until > time.time() * 1000

    @property
    def lapsed(self) -> bool:
        """Return whether a worker acquired the lease and let it lapse."""
        return self.lease_until is not None and not self.held

    @property
    def exhausted(self) -> bool:
        """Return whether all attempts are used and no worker runs the response."""
        return self.attempts >= MAX_ATTEMPTS and not self.held


@dataclass(frozen=True, slots=True)
class ResponseLease:
    """The right to run a response. `attempts` includes this one."""

    tenant: str
    response_id: str
    attempts: int
    lease: Lease

    @property
    def lease_id(self) -> str:
        return self.lease.lease_id

    async def renew(self, seconds: float) -> LeaseState:
        """Extend the lease, and return its state. Raises Interrupted if the lease is lost."""
        return _state(await self.lease.renew(seconds))

    async def release(self) -> None:
        """Do nothing. The response has ended, so no worker needs its lease."""


@dataclass(frozen=True, slots=True)
class ForegroundLease:
    """The right of a request to run its own response. Its record is written when it is first renewed."""

    leases: "ResponseLeases"
    tenant: str
    response_id: str

    async def renew(self, seconds: float) -> None:
        """Extend the lease. Raises Interrupted if the response was cancelled or deleted."""
        await self.leases.extend(self.tenant, self.response_id, seconds)

    async def release(self) -> None:
        """Do nothing. The response has ended, so its lease does not matter."""


class ResponseLeases:
    """The lease records of responses, in the responses' partitions.

    The response's existence is not checked. Nothing is written for an hour after its deletion.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._leases = Leases(
            table, "lease_id", "lease_until", UNCANCELLED, released={"lease_until": 0}, busy="response_running"
        )

    async def acquire(self, tenant: str, response_id: str, seconds: float) -> ResponseLease:
        """Acquire the lease of a response: one write if it is the first attempt.

        Raises:
            NotFound: the response was deleted.
            Conflict: `response_cancelled`; `response_running` while another worker has the lease;
                `attempts_exhausted` if it was acquired MAX_ATTEMPTS times.
        """
        leases = self._leases

        async def next_attempt(found: Item | None) -> Attempt:
            item = found or {}
            before = _admitted(item, response_id)
            return leases.attempt(item, {"attempts": before + 1})

        # Most responses have no lease record before their first attempt.
        key, first = keys.response_lease(tenant, response_id), Attempt(NEW, {"attempts": 1})
        lease = await leases.acquire(key, f"Response {response_id}", seconds, first, next_attempt)
        return ResponseLease(tenant, response_id, lease.item["attempts"], lease)

    async def extend(self, tenant: str, response_id: str, seconds: float) -> None:
        """Write the end of a foreground response's lease, for one unit. Raises Interrupted as `ForegroundLease`."""
        key, span = keys.response_lease(tenant, response_id), self._leases.span_of(seconds)
        try:
            # A foreground response is kept much longer than anything needs its lease.
            changed = span | {"expires_at": span["lease_until"] // 1000 + RECORD_SECONDS}
            await self._table.update(key, changed, UNCANCELLED)
        except ConditionFailed:
            raise Interrupted(f"Response {response_id} was cancelled or deleted.") from None

    async def get_state(self, tenant: str, response_id: str) -> LeaseState:
        """Read the lease record, for one unit."""
        return _state(await self._leases.read(keys.response_lease(tenant, response_id)) or {})

    async def cancel(self, tenant: str, response_id: str) -> LeaseState:
        """Mark a response as cancelled, whether or not a worker runs it. Raises NotFound if it was deleted."""
        key, now = keys.response_lease(tenant, response_id), int(time.time())
        try:
            # Also without a record: a response can be cancelled before a worker has begun it.
            return _state(await self._table.update(key, {"cancelled_at": now}, "attribute_not_exists(sealed_at)"))
        except ConditionFailed:
            raise NotFound("Response", response_id) from None

    async def claim_requeue(self, tenant: str, response_id: str, state: LeaseState) -> bool:
        """Return whether the caller must requeue a response: one caller per lapsed lease, unless it is cancelled."""
        key, lease_id = keys.response_lease(tenant, response_id), state.lease_id
        if lease_id is None:
            return False
        try:
            seen = {":old_id": lease_id, ":old_until": state.lease_until}
            # By the id of the lease: the next worker that dies has another one, and the response is queued once more.
            await self._table.update(key, {"requeued_for": lease_id}, UNCLAIMED, seen)
        except ConditionFailed:
            return False
        return True

    async def claim_waiting(self, tenant: str, response_id: str, seconds: float) -> bool:
        """Return whether the caller must requeue a response without attempts: one caller per period of `seconds`."""
        key, now = keys.response_lease(tenant, response_id), int(time.time())
        try:
            values = {":zero": 0, ":before": int(now - seconds)}
            await self._table.update(key, {"attempts": 0, "requeued_at": now}, WAITING, values)
        except ConditionFailed:
            return False
        return True


def _admitted(found: Item, response_id: str) -> int:
    """Return the attempts in a lease record. Raises NotFound or Conflict if no other attempt is allowed."""
    if "sealed_at" in found:
        raise NotFound("Response", response_id)
    state = _state(found)
    if state.cancelled_at is not None:
        raise Conflict(f"Response {response_id} was cancelled.", code="response_cancelled")
    if state.held:
        raise Conflict(f"Response {response_id} is running. Wait until it ends.", code="response_running")
    # Running it again would repeat its model calls without end, at the cost of the caller.
    if state.exhausted:
        message = f"Response {response_id} was started {state.attempts} times and never ended. Create it again."
        raise Conflict(message, code="attempts_exhausted")
    return state.attempts


def _state(item: Item) -> LeaseState:
    names = ("lease_id", "lease_until", "cancelled_at", "requeued_at")
    return LeaseState(item.get("attempts", 0), *(item.get(name) for name in names))


OWN = f"{LIVE} AND lock_holder = :holder"


@dataclass(frozen=True, slots=True)
class LapsedLease:
    """A lease that its holder, a response, let lapse."""

    holder: str
    lock_id: str
    lock_until: int
    """The end of the lease, in milliseconds since 1970."""
    expires_at: int | None
    """The end of the conversation, in seconds since 1970."""
    item: Item
    """The conversation's record."""


def has_lapsed(record: Item) -> bool:
    """Return whether a conversation's record has a lapsed lease."""
    return "lock_holder" in record and int(record["lock_until"]) <= time.time() * 1000


class OwnedConversation(NamedTuple):
    """The hashes of a conversation's end users, and its budget; None if it is not limited."""

    owners: list[str]
    ledger: SessionLedger | None


class ConversationLeases:
    """Acquires the leases of conversations; each write costs what the conversation's record weighs.

    A response adds its items to the conversation after its ending is stored, so a lease that has lapsed may hide items:
    its holder is finished first (`services/responses/context.py`), and the new holder reads afterwards.

        the lease                           acquire       acquire `again`   find_holder   find_lapsed   clear
        free                                one write     two writes        None          None          nothing
        its own, held                       409           one write         itself        None          nothing
        its own, lapsed                     as below      one write         None          the lease     free
        another's, held                     409           409               the other     None          nothing
        another's, lapsed                   takes over    takes over        None          the lease     free
        another's, lapsed, and it `waits`   409           409               None          the lease     free
        of a deleted conversation           404           404               404           404           as above

    - 409 is `conversation_locked`. `expire` makes the lease of one response lapse, and changes no other.
    - A response `waits` if it keeps its conversation without renewing the lease: one in the background that no worker
      runs yet, or between two attempts. Only the use case knows this, from the response's record.
    - `again` is for a response that expects to have the lease. It then has nothing to finish for another holder.
    - `clear` removes the lease that `find_lapsed` has returned, if its id and end are still the same.
    - A release leaves the id of its lease in `lock_until`. Every acquisition overwrites that, also one by an earlier
      release, which then removes it. So a lease whose `last` one is X was acquired directly after X was released.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        released = dict.fromkeys(("lock_id", "lock_holder", "lock_until", "lock_seconds"))
        self._leases = Leases(
            table,
            "lock_id",
            "lock_until",
            LIVE,
            released=released,
            busy="conversation_locked",
            holder_name="lock_holder",
            names_last=True,
        )

    async def acquire(
        self,
        tenant: str,
        conversation_id: str,
        response_id: str,
        seconds: float,
        waits: Callable[[str], Awaitable[bool]] | None = None,
        *,
        again: bool = False,
        spent_by: Callable[[str], str | None] = lambda _: None,
    ) -> Lease:
        """Acquire the lease for a response.

        One write if the conversation is free. A lapsed lease is taken over unless its holder `waits`: a response that
        keeps the conversation without renewing the lease. `again` expects the response's own lease. `spent_by` returns
        what the log of such a holder says that the conversation has spent, which is written with the lease: if this
        process dies, too, nobody reads that log any more.

        Raises:
            NotFound: the conversation does not exist, or is deleted.
            Conflict: `conversation_locked`; the message names the response that has the lease.
        """
        leases, assign = self._leases, {"lock_holder": response_id}

        async def next_attempt(found: Item | None) -> Attempt:
            if not is_live(found):
                raise NotFound("Conversation", conversation_id)
            holder = found.get("lock_holder")
            if holder is not None and (leases.is_held(found) or (waits is not None and await waits(holder))):
                message = f"Conversation {conversation_id} is running {holder}. Wait until it ends, or try again later."
                raise Conflict(message, code="conversation_locked")
            counted = count_logged(found, spent_by(holder)) if holder is not None else {}
            return leases.attempt(found, assign | counted)

        # The holder is enough, without the lease's id: another attempt of the same response continues its work.
        first = Attempt(OWN, assign, {":holder": response_id}) if again else leases.attempt({}, assign)
        key = keys.conversation(tenant, conversation_id)
        return await leases.acquire(key, f"Conversation {conversation_id}", seconds, first, next_attempt)

    async def find_lapsed(self, tenant: str, conversation_id: str) -> LapsedLease | None:
        """Read a conversation's record, and return its lapsed lease, if there is one. Raises NotFound."""
        found = await self._leases.read(keys.conversation(tenant, conversation_id))
        if not is_live(found):
            raise NotFound("Conversation", conversation_id)
        if not has_lapsed(found):
            return None
        return LapsedLease(found["lock_holder"], found["lock_id"], found["lock_until"], found.get("expires_at"), found)

    async def find_holder(self, tenant: str, conversation_id: str) -> str | None:
        """Return the response that has a conversation's lease; None if it is free. Raises NotFound."""
        found = await self._leases.read(keys.conversation(tenant, conversation_id))
        if not is_live(found):
            raise NotFound("Conversation", conversation_id)
        holder: str | None = found.get("lock_holder")
        return holder if self._leases.is_held(found) else None

    async def find_owned(self, tenant: str, conversation_id: str) -> OwnedConversation:
        """Return the end users and the budget of a conversation. Raises NotFound."""
        found = await self._table.get(keys.conversation(tenant, conversation_id))
        if not is_live(found):
            raise NotFound("Conversation", conversation_id)
        ledger = find_ledger(found, f"Conversation {conversation_id}")
        return OwnedConversation(str(found.get("end_users", "")).split(), ledger)

    async def clear(self, tenant: str, conversation_id: str, lapsed: LapsedLease, spent: str | None = None) -> None:
        """Remove a lapsed lease, unless another response has acquired it in the meantime.

        `spent` is what the log of its holder says that the conversation has spent.
        """
        seen = {":old_id": lapsed.lock_id, ":old_until": lapsed.lock_until}
        with suppress(ConditionFailed):
            key = keys.conversation(tenant, conversation_id)
            changed = self._leases.released | count_logged(lapsed.item, spent)
            await self._table.update(key, changed, "lock_id = :old_id AND lock_until = :old_until", seen)

    async def expire(self, tenant: str, conversation_id: str, response_id: str) -> None:
        """Make the lease of a response lapse now; do nothing if the conversation is not leased for it."""
        with suppress(ConditionFailed):
            key = keys.conversation(tenant, conversation_id)
            await self._table.update(key, {"lock_until": 0}, "lock_holder = :holder", {":holder": response_id})
