"""Turns in the table: a header, and an append-only log whose indexes are written once.

`stint.store.log` has the states of a log, and what `put_header`, `append`, `seal` and `get` do in each. A session's
partition has, in the order of their keys:

    key                  record
    {turn}               header of a turn, which is written once, or the seal in its place
    {turn}:{index}       record of a turn's log
    history:{turn}       segment of the history that begins with this turn (`stint.store.segments`)
    imported:{turn}      id of a turn that was imported
    name                 long name of the session

Turn ids sort by creation, so one Query returns the turns in order, each header before its records. A history is read
from its end, because models get the newest turns that fit, and a bounded read should not read the others.

The calls that a turn waits for are in another partition, so that histories do not contain them. They are written
before the ending that shows the pause: a client that sees the pause may send its results at once.
"""

from collections.abc import AsyncGenerator, Sequence, Set

from stint.dataclasses import dataclass, field
from stint.domain.errors import Conflict, Interrupted, NotFound
from stint.domain.ids import is_foreign
from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.transcribed_turns import TranscribedTurn
from stint.domain.paging import MAX_BYTES
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item, mark_of
from stint.store.log import ENDS, LogItems, first_logs, turn_log, turn_logs
from stint.store.records import is_expired, is_live, new_seal
from stint.store.segments import PAGE, NewestTurns, SegmentStore, unexpired
from stint.store.session_leases import SessionLease
from stint.store.session_records import SessionRecords
from stint.store.sessions import LastTurn
from stint.store.table import Table
from stint.store.turn_documents import TurnDocuments


@dataclass(frozen=True, slots=True)
class History:
    """A session's turns in creation order. `complete`: none was omitted. `last` is the end of the history.

    `transcribed` are those before `turns`, from segments.
    """

    turns: list[StoredTurn]
    complete: bool
    last: LastTurn | None
    transcribed: list[TranscribedTurn] = field(default_factory=list)


class TurnStore:
    """Turns. Writers have the session's lease, but the log separates them, because each index is written once.

    A turn exists after its header is stored. Records after a failed or cancelled ending are ignored.
    """

    def __init__(self, table: Table, sessions: SessionRecords, documents: Documents) -> None:
        self._table = table
        self._blobs = documents
        self._documents = TurnDocuments(table, documents)
        self._segments = SegmentStore(table, sessions, documents)

    async def put_header(self, lease: SessionLease, header: TurnHeader) -> int:
        """Store a turn's header, and return its size. Raises Interrupted if the turn was sealed before it started."""
        key = keys.turn(lease.tenant, lease.agent_id, lease.session_id, header.turn_id)
        try:
            return await self._documents.put_header(_item(lease, key), header, _blobs(lease, header.turn_id))
        except ConditionFailed:
            raise _interrupted(header.turn_id) from None

    async def append(self, lease: SessionLease, index: int, record: TurnRecord) -> int:
        """Append a record to the log of the lease's turn, and return its size.

        Raises Interrupted if its index has another record, because the turn was taken over or deleted. Raises Conflict
        if only the index of the ending is left.
        """
        # The last index is kept free for an ending, so that each log can be closed.
        if index == keys.LAST_INDEX and not record.final:
            raise Conflict(
                f"Turn {lease.turn_id} has {index} records, the maximum. Create another turn.",
                code="turn_full",
            )
        try:
            return await self._write(lease, lease.turn_id, index, record)
        except ConditionFailed:
            raise _interrupted(lease.turn_id) from None

    async def _write(self, lease: SessionLease, turn_id: str, index: int, record: TurnRecord) -> int:
        item = _item(lease, keys.record(lease.tenant, lease.agent_id, lease.session_id, turn_id, index=index))
        item |= mark_of(record.compaction)
        # A fence after a completed turn: the newest record shows `ENDS` readers that the turn is still complete.
        if record.fence:
            item["ended_as"] = RunStatus.completed.value
        if record.ending is not None:
            item["ended_as"] = record.ending.status.value
        consumption = record.ending.consumption if record.ending else None
        return await self._documents.put_record(item, record, _blobs(lease, turn_id), consumption)

    async def seal(self, lease: SessionLease, turn_id: str, ending: RunOutcome, *, ends_waiting: bool = False) -> int:
        """End another turn of the lease's session, whose writer may be dead, and return the number of its records.

        A turn that waits for its client ends if `ending` cancels it, or with `ends_waiting`.

        Records that the writer stores in the meantime are kept, and its next one is refused. `stint.store.log` has the
        effect in each state.
        """
        header = keys.turn(lease.tenant, lease.agent_id, lease.session_id, turn_id)
        items = [item async for item in self._table.query(header.pk, prefix=turn_id, attributes=ENDS)]
        while True:
            log = turn_log(items)
            ends_waiting = ends_waiting or ending.status is RunStatus.cancelled
            paused = log.ended_as == RunStatus.awaiting_input and not ends_waiting
            if log.ended or paused or len(log.records) > keys.LAST_INDEX:
                return len(log.records)
            try:
                # The seal expires after an hour, longer than a writer can run that has not stored its header yet.
                if log.header is None:
                    await self._table.put_new(header._asdict() | new_seal())
                    return 0
                complete = log.ended_as == RunStatus.completed
                await self._write(lease, turn_id, len(log.records), TurnRecord(ending=None if complete else ending))
                return len(log.records) + 1
            except ConditionFailed as refused:  # the writer is alive: its record counts, and the next index is tried
                items.append(refused.found)

    async def history(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        max_bytes: int | None = None,
        since: str | None = None,
        *,
        segments: bool = True,
        until: tuple[str, int | None] | None = None,
    ) -> History:
        """Read a session's turns: one Query per MB or PAGE of records, and the blobs concurrently.

        With `max_bytes` of JSON, read the newest turns that fit, at least one, up to one that compacts those before it.
        With `since`, read that turn and later ones, without segments. `segments` reads older turns in compact form; the
        last turn is read itself in any case. With `until` and without segments, read the history as it was before a
        turn, or when its log had some records. An unknown session has no turns. Raises NotFound for an expired one.
        """
        pk = keys.turns(tenant, agent_id, session_id)
        before = keys.AFTER_TURNS if until is None else keys.place_in_history(*until)
        if segments and since is None:
            newest = await self._segments.read_newest(pk, session_id, max_bytes)
        else:
            items = self._table.query(pk, since=since, before=before, newest_first=True)
            newest = NewestTurns([], True, unexpired(items, session_id))
        chosen, total, complete = list[LogItems](), 0, True
        async for log in turn_logs(newest.uncovered()):
            # A turn that never began, or whose header a deletion has replaced.
            if log.header is None:
                continue
            total += log.needed_size
            if chosen and max_bytes is not None and total > max_bytes:
                complete = False
                break
            # The newest turn is whole, because it may be resumed.
            chosen.append(log if not chosen or max_bytes is None else log.compacted)
            # Models get the summary in place of all older turns.
            if log.compacts and max_bytes is not None:
                newest = newest.without_older()
                break
        if newest.transcribed and not chosen:  # a segment ends before the last turn, unless that was removed
            return await self.history(tenant, agent_id, session_id, max_bytes, segments=False)
        older, all_fit = newest.fitting(total, max_bytes) if complete else ([], False)
        # `brief` omits large images, which models do not get. The newest turn has them, because a resume returns it.
        turns = await self._documents.read(chosen[:0:-1], brief=True) + await self._documents.read(chosen[:1])
        last = LastTurn(turns[-1].header.turn_id, len(turns[-1].records)) if turns else None
        return History(turns, all_fit, last, older)

    async def put_segment(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        turns: Sequence[TranscribedTurn],
        after: str | None,
        expires_at: int | None,
    ) -> str:
        """Store successive ended turns in compact form; see SegmentStore.put.

        They must not have the session's last turn, which may change.
        """
        return await self._segments.put(tenant, agent_id, session_id, turns, after, expires_at)

    async def pages(
        self, tenant: str, agent_id: str, session_id: str, turn_ids: Set[str] | None = None
    ) -> AsyncGenerator[tuple[list[StoredTurn], bool], None]:
        """Yield a session's turns in creation order, about MAX_BYTES of JSON at a time. `turn_ids` selects some.

        Each page has a flag whether others follow. There is at least one. Raises NotFound for a session that has
        expired.
        """
        if turn_ids is not None:
            turn_ids = set((await self.find_imported(tenant, agent_id, session_id, turn_ids)).values())
        chosen: list[LogItems] = []
        total = 0
        items = self._table.query(keys.turns(tenant, agent_id, session_id), before=keys.AFTER_TURNS)
        async for log in turn_logs(unexpired(items, session_id)):
            if log.header is None or (turn_ids is not None and keys.turn_of(log.header["sk"]) not in turn_ids):
                continue
            total += log.size
            if chosen and total > MAX_BYTES:
                yield await self._documents.read(chosen), True
                chosen, total = [], log.size
            chosen.append(log)
        yield await self._documents.read(chosen), False

    async def page(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        *,
        after: str | None = None,
        limit: int = 20,
        newest_first: bool = True,
    ) -> tuple[list[StoredTurn], bool]:
        """Return the turns after another one, and whether others follow: one Query per PAGE of records.

        About MAX_BYTES of JSON, at least one turn; no others are read but the records of one call. `after` need not
        exist. Raises NotFound if it is not the id of a turn, or for a session that has expired.
        """
        start: str | None = None
        if after is not None:
            imported = await self.find_imported(tenant, agent_id, session_id, {after})
            ids = (tenant, agent_id, session_id, imported[after])
            # A turn's records follow its header, and precede it in the other direction.
            start = (keys.turn(*ids) if newest_first else keys.after_records(*ids)).sk
        pk = keys.turns(tenant, agent_id, session_id)
        items = self._table.query(pk, before=keys.AFTER_TURNS, after=start, newest_first=newest_first, page=PAGE)
        found, more = await first_logs(unexpired(items, session_id), limit, MAX_BYTES)
        return await self._documents.read(found), more

    async def get(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> StoredTurn:
        """Read one turn. Raises NotFound."""
        turn_id = (await self.find_imported(tenant, agent_id, session_id, {turn_id}))[turn_id]
        pk, prefix = keys.turn(tenant, agent_id, session_id, turn_id)
        log = turn_log([item async for item in unexpired(self._table.query(pk, prefix=prefix), session_id)])
        if log.header is None:
            raise NotFound("Turn", turn_id)
        return (await self._documents.read([log]))[0]

    async def get_ending(self, tenant: str, agent_id: str, session_id: str, last: LastTurn) -> RunOutcome | None:
        """Read how a turn has ended from the last record of its log; None if that is no ending, or not known."""
        if last.records <= 0:
            return None
        item = await self._table.get(keys.record(tenant, agent_id, session_id, last.turn_id, index=last.records - 1))
        if item is None or "sealed_at" in item or is_expired(item):
            return None
        [record] = await self._documents.read_records([item])
        return record.ending

    async def read_rest(
        self, tenant: str, agent_id: str, session_id: str, turn_id: str, start: int
    ) -> list[TurnRecord]:
        """Read the records of a turn's log from an index on. Raises NotFound if the turn was deleted."""
        # A reader of a full log asks for the index after the last one, which has no key.
        if start > keys.LAST_INDEX:
            return []
        pk, first = keys.record(tenant, agent_id, session_id, turn_id, index=start)
        end = keys.after_records(tenant, agent_id, session_id, turn_id).sk
        log = turn_log([item async for item in unexpired(self._table.query(pk, since=first, before=end), session_id)])
        # The read begins at `start`, so an ended log without records begins with the seal of a deletion.
        if log.ended and not log.records:
            raise NotFound("Turn", turn_id)
        return await self._documents.read_records(log.records)

    async def find_imported(self, tenant: str, agent_id: str, session_id: str, turn_ids: Set[str]) -> dict[str, str]:
        """Return the ids of turns that had other ids on the server that they were imported from.

        Ids that this server made, and unknown ones, are returned as they are: without a read if there are no others.
        """
        asked = {
            turn_id: keys.imported_turn(tenant, agent_id, session_id, turn_id)
            for turn_id in filter(is_foreign, turn_ids)
        }
        found = await self._table.get_many(list(asked.values())) if asked else {}
        new = {turn_id: found[key]["turn_id"] for turn_id, key in asked.items() if is_live(found.get(key))}
        return {turn_id: new.get(turn_id, turn_id) for turn_id in turn_ids}

    async def put_body(self, lease: SessionLease, body: bytes) -> str:
        """Store a body among the blobs of the lease's turn, and return its key."""
        return await self._blobs.put_body(_blobs(lease, lease.turn_id), body)

    async def put_pending(self, lease: SessionLease, pending: PendingCalls) -> None:
        """Store the calls that the lease's turn waits for. Raises Interrupted if the session was deleted."""
        key = keys.pending(lease.tenant, lease.agent_id, lease.session_id, lease.turn_id)
        item = await self._documents.pack(_item(lease, key), pending, _blobs(lease, lease.turn_id))
        # Replaces the calls of an earlier pause. A deletion has sealed this key, too, because no index protects it.
        try:
            await self._table.put(item, condition="attribute_not_exists(sealed_at)")
        except ConditionFailed:
            raise _interrupted(lease.turn_id) from None

    async def get_pending(self, tenant: str, agent_id: str, session_id: str, turn_id: str) -> PendingCalls | None:
        """Read the calls that a turn waits for; None if there are none."""
        item = await self._table.get(keys.pending(tenant, agent_id, session_id, turn_id))
        if item is None or "sealed_at" in item or is_expired(item):
            return None
        return await self._documents.read_pending(item)

    async def delete_pending(self, lease: SessionLease, turn_id: str) -> None:
        """Delete the calls that a turn of the lease's session waited for."""
        key = keys.pending(lease.tenant, lease.agent_id, lease.session_id, turn_id)
        # A seal stays: the deletion of the session relies on it.
        await self._table.delete(key, condition="attribute_not_exists(sealed_at)")


def _item(lease: SessionLease, key: keys.Key) -> Item:
    """Return a new record that expires with its session."""
    return key._asdict() | ({} if lease.expires_at is None else {"expires_at": lease.expires_at})


def _blobs(lease: SessionLease, turn_id: str) -> str:
    ephemeral = lease.expires_at is not None
    return keys.turn_blobs(lease.tenant, lease.agent_id, lease.session_id, turn_id, expires=ephemeral)


def _interrupted(turn_id: str) -> Interrupted:
    return Interrupted(f"Turn {turn_id} was ended by another request: the session was taken over or deleted.")
