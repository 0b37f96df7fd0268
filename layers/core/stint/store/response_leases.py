"""The leases of responses: which worker runs one in the background, its attempts, and its cancellation.

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

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.table import NEW, Table

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
