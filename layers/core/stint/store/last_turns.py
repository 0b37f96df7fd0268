"""The last turns of sessions in a list, by the sessions' own records. Nothing is stored for it.

A turn's status is what reading the turn would show (`stint.services.agents.interrupted`), without its steps:

    the session's record                  the turn           its status is read from
    was released, with a count of         `last_turn`        the last record of its log, by its key: one BatchGetItem
    records                                                  for 100 sessions
    was released, UNKNOWN                 `last_turn`        the newest record of its log: a Query
    has a lease                           `lease_turn`       the newest record of its log: a Query
    has a lease of a turn that never      `last_turn`        as above
    began

A turn without an ending is in progress while the session's lease is held for it, and has failed otherwise. Its start is
the time of its id. A session without a turn has no entry here.
"""

import time
from collections.abc import Sequence

from stint.dataclasses import replace
from stint.domain.ids import time_of
from stint.domain.llama_stack.turns import TurnStatus, TurnSummary
from stint.domain.paging import MAX_ENTRIES, Window
from stint.store import keys
from stint.store.entry_pages import Entries, EntrySearch, EntrySource, list_entries
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.lease import settle
from stint.store.log import ENDS
from stint.store.parallel import map_concurrently
from stint.store.records import is_live
from stint.store.session_records import SessionRecords
from stint.store.table import GET_BATCH, Table, take

EXAMINED = 1_000
"""Maximum sessions of one list whose last turns are read."""

CALLS = 32
"""Maximum concurrent Queries, as for lists of responses."""


class LastTurns:
    """Lists sessions with their last turns."""

    def __init__(self, table: Table, records: SessionRecords) -> None:
        self._table = table
        self._records = records

    async def list(
        self, tenant: str, agent_id: str, window: Window, status: TurnStatus | None, search: EntrySource | None = None
    ) -> tuple[Entries, dict[str, TurnSummary]]:
        """Return the entries of a window's sessions, and their last turns by the ids of the sessions.

        With `status`, those whose last turn has it. With `search`, those that it finds. At most EXAMINED sessions are
        looked at.
        """
        pk = keys.sessions(tenant, agent_id)
        limit = min(MAX_ENTRIES if window.limit is None else window.limit, EXAMINED)
        if status is None:
            entries = await list_entries(self._table, pk, replace(window, limit=limit), search)
            return entries, await self.read(tenant, agent_id, entries.items)
        search = search or EntrySearch(self._table, pk, window)
        found, turns, examined = list[Item](), dict[str, TurnSummary](), 0
        while len(found) < limit and examined < EXAMINED and not search.exhausted:
            batch = await search.take(GET_BATCH)
            examined += len(batch)
            read = await self.read(tenant, agent_id, batch)
            turns |= read
            found += [item for item in batch if item["sk"] in read and read[item["sk"]].status is status]
        return Entries(found, search.more, search.position).cut(limit), turns

    async def read(self, tenant: str, agent_id: str, entries: Sequence[Item]) -> dict[str, TurnSummary]:
        """Return the last turns of the sessions with these list entries, except those that are deleted meanwhile."""
        records = await self._records.find_listed(entries)
        settled = await map_concurrently(self._settle, list(records.items()))
        held = {session_id: item for session_id, item in settled if is_live(item)}
        ends = await self._read_ends(tenant, agent_id, held)

        async def summarize(session_id: str) -> TurnSummary | None:
            record = held[session_id]
            if session_id in ends:
                return summary(record["last_turn"], ends[session_id].get("ended_as"), running=False)
            return await self._find(tenant, agent_id, session_id, record)

        found = await map_concurrently(summarize, list(held), calls=CALLS)
        return {session_id: turn for session_id, turn in zip(held, found, strict=True) if turn is not None}

    async def _settle(self, found: tuple[str, Item]) -> tuple[str, Item | None]:
        session_id, item = found
        return session_id, await settle(self._table, item, "lease_id", "lease_until")

    async def _read_ends(self, tenant: str, agent_id: str, records: dict[str, Item]) -> dict[str, Item]:
        """Return the last records of the last turns of the sessions that have no lease, and whose count is known."""
        wanted: dict[str, Key] = {}
        for session_id, item in records.items():
            count = int(item.get("last_records", 0))
            if "lease_turn" not in item and count > 0:
                wanted[session_id] = keys.record(tenant, agent_id, session_id, item["last_turn"], index=count - 1)
        found = await self._table.get_many(list(wanted.values()), attributes="ended_as")
        return {session_id: found[key] for session_id, key in wanted.items() if key in found}

    async def _find(self, tenant: str, agent_id: str, session_id: str, record: Item) -> TurnSummary | None:
        """Return the last turn of a session that has a lease, or whose log may have changed; None if it has none."""
        candidates = [record[name] for name in ("lease_turn", "last_turn") if name in record]
        for turn_id in dict.fromkeys(candidates):
            pk = keys.turns(tenant, agent_id, session_id)
            newest = await take(self._table.query(pk, prefix=turn_id, newest_first=True, attributes=ENDS, page=1), 1)
            running = turn_id == record.get("lease_turn") and int(record["lease_until"]) > time.time() * 1000
            # A seal is in the place of a turn that never began, or of one that is being deleted.
            if (newest and "sealed_at" not in newest[0]) or (running and not newest):
                return summary(turn_id, newest[0].get("ended_as") if newest else None, running=running)
        return None


def summary(turn_id: str, ended_as: str | None, *, running: bool) -> TurnSummary:
    """Return a turn by the ending of its newest record."""
    status = TurnStatus(ended_as) if ended_as else TurnStatus.in_progress if running else TurnStatus.failed
    return TurnSummary(turn_id=turn_id, started_at=time_of(turn_id), status=status)
