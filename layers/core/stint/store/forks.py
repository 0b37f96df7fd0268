"""Copies of a session's turns in the table, for a session that has no record yet.

The logs are chosen by their items, newest first, and then read, copied and written turn by turn, so that one turn at a
time is in memory with its steps. No record of the source is written. A document that is an object of S3 becomes an
object of the copy, so that the copy does not depend on the source.

What a request may copy is bounded: it has 29 s, and a new partition takes 1,000 write units a second.
"""

from collections.abc import AsyncIterable

from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.store import keys
from stint.store.documents import Documents
from stint.store.items import Item, mark_of
from stint.store.log import LogItems, turn_logs
from stint.store.parallel import CALLS
from stint.store.records import expiry
from stint.store.segments import unexpired
from stint.store.sessions import SessionPlace
from stint.store.table import WRITE_BATCH, Table
from stint.store.turn_documents import TurnDocument, TurnDocuments
from stint.store.turns import TurnStore

MOST_RECORDS = 2_000
"""Maximum records that a fork copies."""

MOST_BYTES = 8_000_000
"""Maximum bytes of JSON that a fork copies, with large generated images."""

MOST_PACKED = CALLS * WRITE_BATCH
"""Records that are collected before they are written: as many as concurrent calls take."""


class ForkStore:
    """Reads turns of one session, and writes their copies to another."""

    def __init__(self, table: Table, documents: Documents, turns: TurnStore) -> None:
        self._table = table
        self._documents = TurnDocuments(table, documents)
        self._turns = turns

    async def choose(self, source: SessionPlace, turn_id: str, max_bytes: int) -> tuple[list[LogItems], bool]:
        """Return the logs of a turn and of those before it, newest first, and whether these are all.

        They are the newest ones of which `max_bytes` of JSON are for the model, at least that turn.

        Raises:
            NotFound: there is no such turn, or the session has expired.
            InvalidRequest: the turn is larger than a fork may be.
        """
        ids = source.tenant, source.agent_id, source.session_id
        turn_id = (await self._turns.find_imported(*ids, {turn_id}))[turn_id]
        end = keys.after_records(*ids, turn_id).sk
        items = self._table.query(keys.turns(*ids), before=end, newest_first=True)
        chosen, needed, size, records = list[LogItems](), 0, 0, 0
        async for log in turn_logs(unexpired(items, source.session_id)):
            if not chosen and (log.header is None or log.header["sk"] != turn_id):
                raise NotFound("Turn", turn_id)
            if log.header is None:  # a turn that never began
                continue
            needed, size, records = needed + log.needed_size, size + log.size, records + len(log.items)
            if size > MOST_BYTES or records > MOST_RECORDS or (chosen and needed > max_bytes):
                if not chosen:
                    raise too_large(turn_id, size, records)
                return chosen, False
            chosen.append(log)
        if not chosen:
            raise NotFound("Turn", turn_id)
        return chosen, True

    async def read(self, log: LogItems) -> StoredTurn:
        """Read a turn. Raises NotFound if its session was deleted."""
        [turn] = await self._documents.read([log])
        return turn

    async def put(self, place: SessionPlace, turns: AsyncIterable[StoredTurn]) -> None:
        """Write turns, 25 records per call."""
        items: list[Item] = []
        async for turn in turns:
            items += await self._pack_turn(place, turn)
            if len(items) >= MOST_PACKED:
                await self._table.put_many(items)
                items = []
        await self._table.put_many(items)

    async def _pack_turn(self, place: SessionPlace, turn: StoredTurn) -> list[Item]:
        ids = place.tenant, place.agent_id, place.session_id, turn.header.turn_id
        header = await self._pack(place, keys.turn(*ids), turn.header, {})
        records = [
            await self._pack(place, keys.record(*ids, index), record, marks_of(record))
            for index, record in enumerate(turn.records)
        ]
        return [header, *records]

    async def _pack(self, place: SessionPlace, key: keys.Key, document: TurnDocument, marks: Item) -> Item:
        ephemeral, turn_id = place.expires_at is not None, keys.turn_of(key.sk)
        prefix = keys.turn_blobs(place.tenant, place.agent_id, place.session_id, turn_id, expires=ephemeral)
        return await self._documents.pack(key._asdict() | expiry(place.expires_at) | marks, document, prefix)


def marks_of(record: TurnRecord) -> Item:
    """Return the attributes by which a log is read without its documents."""
    found = mark_of(record.compaction)
    if record.fence:  # one after a completed turn
        found["ended_as"] = RunStatus.completed.value
    if record.ending is not None:
        found["ended_as"] = record.ending.status.value
    return found


def too_large(turn_id: str, size: int, records: int) -> InvalidRequest:
    return InvalidRequest(
        f"Turn {turn_id} has {size} bytes of JSON in {records} records. A fork copies at most {MOST_BYTES} bytes in "
        f"{MOST_RECORDS} records. Fork from an earlier turn.",
        code="turn_too_large",
        param="fork_from",
    )
