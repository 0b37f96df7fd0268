"""The leases of conversations: one response at a time. A lease is on the conversation's record.

A response adds its items to the conversation after its ending is stored, so a lease that has lapsed may hide items:
its holder is finished first (`services/responses/conversation_recovery.py`), and the new holder reads afterwards.

    the lease                           acquire       acquire `again`   find_holder   find_lapsed   clear
    free                                one write     two writes        None          None          nothing
    its own, held                       409           one write         itself        None          nothing
    its own, lapsed                     as below      one write         None          the lease     free
    another's, held                     409           409               the other     None          nothing
    another's, lapsed                   takes over    takes over        None          the lease     free
    another's, lapsed, and it `waits`   409           409               None          the lease     free
    of a deleted conversation           404           404               404           404           as above

- 409 is `conversation_locked`. `expire` makes the lease of one response lapse, and changes no other.
- A response `waits` if it keeps its conversation without renewing the lease: one in the background that no worker runs
  yet, or between two attempts. Only the use case knows this, from the response's record.
- `again` is for a response that expects to have the lease. It then has nothing to finish for another holder.
- `clear` removes the lease that `find_lapsed` has returned, if its id and end are still the same.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.store import keys
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.lease import Attempt, Lease, Leases
from stint.store.records import is_live
from stint.store.table import LIVE, Table

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


def has_lapsed(record: Item) -> bool:
    """Return whether a conversation's record has a lapsed lease."""
    return "lock_holder" in record and int(record["lock_until"]) <= time.time() * 1000


class ConversationLeases:
    """Acquires the leases of conversations; each write costs what the conversation's record weighs."""

    def __init__(self, table: Table) -> None:
        self._table = table
        released = dict.fromkeys(("lock_id", "lock_holder", "lock_until", "lock_seconds"))
        self._leases = Leases(table, "lock_id", "lock_until", LIVE, released, "conversation_locked", "lock_holder")

    async def acquire(
        self,
        tenant: str,
        conversation_id: str,
        response_id: str,
        seconds: float,
        waits: Callable[[str], Awaitable[bool]] | None = None,
        *,
        again: bool = False,
    ) -> Lease:
        """Acquire the lease for a response.

        One write if the conversation is free. A lapsed lease is taken over unless its holder `waits`: a response that
        keeps the conversation without renewing the lease. `again` expects the response's own lease.

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
            return leases.attempt(found, assign)

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
        return LapsedLease(found["lock_holder"], found["lock_id"], found["lock_until"], found.get("expires_at"))

    async def find_holder(self, tenant: str, conversation_id: str) -> str | None:
        """Return the response that has a conversation's lease; None if it is free. Raises NotFound."""
        found = await self._leases.read(keys.conversation(tenant, conversation_id))
        if not is_live(found):
            raise NotFound("Conversation", conversation_id)
        holder: str | None = found.get("lock_holder")
        return holder if self._leases.is_held(found) else None

    async def find_owners(self, tenant: str, conversation_id: str) -> list[str]:
        """Return the hashes of the end users to whom a conversation belongs. Raises NotFound."""
        found = await self._table.get(keys.conversation(tenant, conversation_id))
        if not is_live(found):
            raise NotFound("Conversation", conversation_id)
        return str(found.get("end_users", "")).split()

    async def clear(self, tenant: str, conversation_id: str, lapsed: LapsedLease) -> None:
        """Remove a lapsed lease, unless another response has acquired it in the meantime."""
        seen = {":old_id": lapsed.lock_id, ":old_until": lapsed.lock_until}
        with suppress(ConditionFailed):
            key = keys.conversation(tenant, conversation_id)
            await self._table.update(key, self._leases.released, "lock_id = :old_id AND lock_until = :old_until", seen)

    async def expire(self, tenant: str, conversation_id: str, response_id: str) -> None:
        """Make the lease of a response lapse now; do nothing if the conversation is not leased for it."""
        with suppress(ConditionFailed):
            key = keys.conversation(tenant, conversation_id)
            await self._table.update(key, {"lock_until": 0}, "lock_holder = :holder", {":holder": response_id})
