"""Segments of a session's history: successive turns in compact form, written once.

They only make a read cheaper. If one is missing, damaged, or of another version, the turns themselves are read.

A segment has turns that cannot change any more: all but the session's last one, which may be resumed. It is named by
its first turn, so two processes that write the same segment meet at its key, and the second one uses what is there. It
names the end of the one `after` which it begins, so a reader notices a gap:

    turns:       1 2 3 | 4 5 6 | 7 8         8 is the last turn
    segments:    [1-3]   [4-6, after 3]      6 is `covered`

A read begins at the end of the partition, where segments follow all turns, and reads newest first: segments as far as
they are needed, then the turns after `covered`. What a reader does with each segment:

    it is in sequence, and readable           uses it
    it is missing, damaged, or of another     uses no newer segment: reads their turns, and the older segments
    version
    newer turns are enough for `max_bytes`    does not read it, and returns an incomplete history

A writer that has lost its session cannot change a turn in a segment: the next holder seals the turn before it adds one.

docs/decisions.md, entry 17, has the reasons.
"""

import logging
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from itertools import accumulate, pairwise

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, StintError, StoreUnavailable
from stint.domain.llama_stack.transcribed_turns import Segment, TranscribedTurn
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item, mark_of
from stint.store.parallel import map_concurrently
from stint.store.records import is_expired, is_live
from stint.store.session_records import SessionRecords
from stint.store.table import Table

logger = logging.getLogger(__name__)

PAGE = 64
"""Records per call while segments are read: those of the newest turns, which no segment has, and few others."""

Turns = list[TranscribedTurn]


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The range of turns that a segment's record names, without its document."""

    first: str
    last: str
    after: str | None
    """The last turn of the segment before, None if there is none."""
    size: int
    """Bytes of JSON of all its turns, as they are stored."""
    last_size: int
    """Bytes of JSON of its last turn."""

    @classmethod
    def of(cls, item: Item) -> "SegmentRange | None":
        """Return the range of a record; None if it is damaged."""
        first = keys.first_turn(item["sk"])
        try:
            return cls(first or "", item["last"], item.get("after"), int(item["turn_bytes"]), int(item["last_bytes"]))
        except (KeyError, TypeError, ValueError):
            return None

    def matches(self, turns: Turns) -> bool:
        """Return whether the turns of a document are those that the record names."""
        ids = [turn.turn_id for turn in turns]
        ordered = all(one < other for one, other in pairwise(ids))
        return ids[:1] == [self.first] and ids[-1:] == [self.last] and ordered and size_of(turns) == self.size


@dataclass(frozen=True, slots=True)
class NewestTurns:
    """The end of a session's history.

    `transcribed` has the turns of segments, newest first, up to the one that `covered` names. `complete`: no older turn
    exists. `items` are the records of turns, newest first; those of covered turns follow the others.
    """

    transcribed: Turns
    complete: bool
    items: AsyncIterable[Item]

    @property
    def covered(self) -> str:
        """Return the newest turn of the segments, or an empty text."""
        return self.transcribed[0].turn_id if self.transcribed else ""

    def without_older(self) -> "NewestTurns":
        """Return the end of a history that begins after all segments."""
        return NewestTurns([], True, self.items)

    async def uncovered(self) -> AsyncGenerator[Item, None]:
        """Yield the records of turns up to the first one that is in a segment."""
        async for item in self.items:
            if keys.turn_of(item["sk"]) <= self.covered:
                return
            yield item

    def fitting(self, used: int, max_bytes: int | None) -> tuple[Turns, bool]:
        """Return the turns of segments that fit, in creation order, and whether no older turn exists.

        `used` of `max_bytes` are those of newer turns.
        """
        if max_bytes is None:
            return self.transcribed[::-1], self.complete
        totals = accumulate((turn.size for turn in self.transcribed), initial=used)
        count = sum(total <= max_bytes for total in totals) - 1
        count = max(count, 0)
        return self.transcribed[:count][::-1], self.complete and count == len(self.transcribed)


class SegmentStore:
    """Writes and reads segments."""

    def __init__(self, table: Table, sessions: SessionRecords, documents: Documents) -> None:
        self._table = table
        self._sessions = sessions
        self._documents = documents

    async def put(
        self,
        tenant: str,
        agent_id: str,
        session_id: str,
        turns: Sequence[TranscribedTurn],
        after: str | None,
        expires_at: int | None,
    ) -> str:
        """Store a segment unless there is one that begins with the same turn, and return the last turn of that segment.

        `after` is the last turn of the segment before. A unit for each KB in compact form, and one read. The session's
        existence is checked after the write, so that a later deletion finds the segment. Raises NotFound after an
        earlier deletion, and removes the segment.
        """
        key, last = keys.segment(tenant, agent_id, session_id, turns[0].turn_id), turns[-1]
        item: Item = {"last": last.turn_id, "turn_bytes": size_of(turns), "last_bytes": last.size}
        item |= {name: value for name, value in (("after", after), ("expires_at", expires_at)) if value is not None}
        item |= mark_of(turns[0].compacted)
        ephemeral = expires_at is not None
        blobs = keys.turn_blobs(tenant, agent_id, session_id, turns[0].turn_id, expires=ephemeral)
        packed = await self._documents.pack(key._asdict() | item, Segment.of(turns), blobs)
        try:
            await self._table.put_new(packed)
        except ConditionFailed as refused:
            # Another process was first. Its segment may end at another turn, where this one's next segment begins.
            await self._documents.delete_blob(packed)
            return str(refused.found.get("last") or last.turn_id)
        # After the write: a deletion that has not seen the segment has marked the session before.
        if not is_live(await self._sessions.find(tenant, agent_id, session_id)):
            await self._table.delete(key)
            await self._documents.delete_blob(packed)
            raise NotFound("Session", session_id)
        return last.turn_id

    async def read_newest(self, pk: str, session_id: str, max_bytes: int | None) -> NewestTurns:
        """Read the newest segments of a session, and begin to read the turns that follow them: one call.

        Turns beyond `max_bytes` of JSON are not needed. Raises NotFound for a session that has expired.
        """
        items = unexpired(self._newest_items(pk), session_id)
        found, size, turn = list[Item](), 0, None
        async for item in items:
            if keys.first_turn(item["sk"]) is None:
                turn = item
                break
            found.append(item)
            named = SegmentRange.of(item)
            size += named.size if named else 0
            if max_bytes is not None and (size > max_bytes or "compacts" in item):
                break
        transcribed, complete = await self._read(found, max_bytes)
        # The read stopped among the segments, or none of them can be used: turns are read in a Query of their own.
        if found and (turn is None or not transcribed):
            page = PAGE if transcribed else None
            others = self._table.query(pk, before=keys.AFTER_TURNS, newest_first=True, page=page)
            return NewestTurns(transcribed, complete, unexpired(others, session_id))
        return NewestTurns(transcribed, complete, prepend_item(turn, items))

    async def _newest_items(self, pk: str) -> AsyncGenerator[Item, None]:
        """Read segments and then turns, newest first. Without segments, only the first call is limited."""
        first, count = "", 0
        limited = self._table.query(pk, before=keys.AFTER_SEGMENTS, newest_first=True, page=PAGE)
        async for item in limited:
            yield item
            first, count = first or item["sk"], count + 1
            if count == PAGE and keys.first_turn(first) is None:
                break
        else:
            return
        async for other in self._table.query(pk, before=keys.AFTER_TURNS, after=item["sk"], newest_first=True):
            yield other

    async def _read(self, items: Sequence[Item], max_bytes: int | None) -> tuple[Turns, bool]:
        """Return the turns of the segments that can be used, newest first, and whether they reach the first turn.

        Segments are used down to the oldest turn that is needed. Those above a gap are not used.
        """
        ranges = [SegmentRange.of(item) for item in items]
        needed = list(fitting_ranges(ranges, max_bytes))
        contents = await map_concurrently(self._decode, list(zip(items, ranges, needed, strict=True)))
        used, total, after, enough = Turns(), 0, None, False
        for named, is_needed, turns in zip(ranges, needed, contents, strict=True):
            # The next older one does not fit: the history is cut here, on purpose.
            if used and named is not None and named.last == after and not is_needed:
                return used, False
            if used and after is None:
                break
            # Newer segments would leave a hole in the history, so what was collected is dropped.
            if named is None or turns is None:
                used, total, after, enough = [], 0, None, False
                continue
            if named.last != after:
                used, total = [], 0
            used.extend(reversed(turns))
            total, after = total + named.size, named.after
            enough = after is None or (max_bytes is not None and total > max_bytes)
        return (used, after is None) if enough else ([], True)

    async def _decode(self, stored: tuple[Item, SegmentRange | None, bool]) -> Turns | None:
        """Return the turns of a segment; None if it is not needed, or cannot be read."""
        item, named, is_needed = stored
        if named is None or not is_needed:
            return None
        try:
            [raw] = await self._documents.read([item])
            turns = Segment.model_validate_json(raw).to_turns()
        except StoreUnavailable:
            raise
        except (StintError, KeyError, ValueError, zlib.error) as error:
            logger.warning("A segment of a history cannot be read", extra={"segment": item["sk"], "error": repr(error)})
            return None
        return turns if named.matches(turns) else None


def fitting_ranges(ranges: Sequence[SegmentRange | None], max_bytes: int | None) -> list[bool]:
    """Return for each range, newest first, whether at least its last turn fits into `max_bytes` after newer ones."""
    fits, total = list[bool](), 0
    for named in ranges:
        fits.append(named is not None and (max_bytes is None or total + named.last_size <= max_bytes))
        total += named.size if named is not None else 0
    return fits


def size_of(turns: Sequence[TranscribedTurn]) -> int:
    return sum(turn.size for turn in turns)


async def unexpired(items: AsyncIterable[Item], session_id: str) -> AsyncGenerator[Item, None]:
    """Yield the items of a session. Raises NotFound if it has expired. Seals expire on their own."""
    async for item in items:
        if is_expired(item) and "sealed_at" not in item:
            raise NotFound("Session", session_id)
        yield item


async def prepend_item(first: Item | None, others: AsyncIterable[Item]) -> AsyncGenerator[Item, None]:
    """Yield the first item, unless there is none, and then the others."""
    if first is not None:
        yield first
    async for item in others:
        yield item
