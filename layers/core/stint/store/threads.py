"""The threads of protocols whose clients choose the names of conversations, and the session of each.

Clients choose names such as "1", so a thread is known by a hash of its name with everything that must separate it from
others: who sends it, for which end user, to which agent. Its entry has the id of its session. The entry is written in
the transaction that creates the session, so of two requests that use a new thread at the same time, one creates the
session, and the other one finds it. A session has the hash, and its deletion removes the entry:

    the session of an entry     the next request of the thread
    exists                      uses it
    is deleted, or has expired  creates another one, whose entry replaces this one

docs/decisions.md, entry 164, has the reasons.
"""

from typing import TYPE_CHECKING

from stint.dataclasses import dataclass
from stint.store import keys
from stint.store.records import expiry
from stint.store.table import Table

if TYPE_CHECKING:
    from stint.store.transactions import Put

UNUSED = "attribute_not_exists(pk) OR session_id = :replaced"


@dataclass(frozen=True, slots=True)
class NewThread:
    """The thread of a session that is created. Its entry is that of no session, or of `replaced`."""

    digest: str
    replaced: str = ""

    def write(self, tenant: str, session_id: str, expires_at: int | None) -> "Put":
        """Return the write of the entry: two units in the transaction that creates the session."""
        from stint.store.transactions import Put  # noqa: PLC0415 - with the transaction

        entry = keys.thread(tenant, self.digest)._asdict() | {"session_id": session_id} | expiry(expires_at)
        return Put(entry, UNUSED, {":replaced": self.replaced})


class ThreadStore:
    """The threads of tenants."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def find_session(self, tenant: str, digest: str) -> str | None:
        """Return the session of a thread, which need not exist any more; None for a thread that is new."""
        found = await self._table.get(keys.thread(tenant, digest))
        return None if found is None else str(found["session_id"])


async def remove_thread(table: Table, tenant: str, digest: str, session_id: str) -> None:
    """Delete the entry of a thread, unless another session has it by now."""
    own = {":own": session_id}
    await table.delete(keys.thread(tenant, digest), condition="session_id = :own", values=own)
