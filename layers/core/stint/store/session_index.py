"""The list of all sessions of a tenant, by which a session is found without its agent.

Llama Stack's paths name the agent of a session; those of other APIs do not. An entry has the agent, and nothing that
changes. The creation of a session writes it in the same transaction (`SessionRecords.create`), and a deletion removes
it right before the list entry of the session. A session that a release without this list created has no entry: only the
list of its agent has it.
"""

from typing import NamedTuple

from stint.domain.errors import NotFound
from stint.store import keys
from stint.store.records import is_live, query_shards
from stint.store.table import Table


class ListedSession(NamedTuple):
    agent_id: str
    session_id: str


class SessionIndex:
    """The sessions of tenants in the order of their creation."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def find_agent(self, tenant: str, session_id: str) -> str:
        """Return the agent of a session, which need not exist any more. Raises NotFound for one without an entry."""
        found = await self._table.get(keys.listed_session(tenant, session_id))
        if not is_live(found):
            raise NotFound("Session", session_id)
        return str(found["agent_id"])

    async def list(
        self, tenant: str, *, after: str | None, limit: int, newest_first: bool
    ) -> tuple[list[ListedSession], bool]:
        """Return sessions by creation, those after an id, and whether others follow. Some may be deleted by now.

        Raises NotFound if `after` is not the id of a session, which need not exist.
        """
        if after is not None:
            keys.listed_session(tenant, after)  # refuses an invalid id
        ids, more = await query_shards(
            self._table,
            keys.all_sessions(tenant),
            after=after,
            limit=limit,
            newest_first=newest_first,
            # Expired entries stay for up to two days. A page of them alone would look like the end of the list.
            attributes="sk, expires_at, deleted_at",
            accepts=is_live,
        )
        entries = {each: keys.listed_session(tenant, each) for each in ids}
        found = await self._table.get_many(list(entries.values()))
        live = [each for each in ids if is_live(found.get(entries[each]))]
        return [ListedSession(found[entries[each]]["agent_id"], each) for each in live], more
