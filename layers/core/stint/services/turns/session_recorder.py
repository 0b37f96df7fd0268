"""Recording of a turn that has ended, for the next turn of its session.

The process keeps the transcript; segments of the history are written after the turn has ended.
"""

import logging
from collections.abc import Iterator, Sequence

from stint.dataclasses import dataclass, replace
from stint.domain.inference import AssistantAnswer
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.transcribed_turns import Segment, TranscribedTurn
from stint.services.turns.session_transcript import Key, SessionTranscript, TranscriptCache
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.turns import History, TurnStore

logger = logging.getLogger(__name__)

SEGMENT_TURNS = 50
"""Turns of a segment. A process that remembers nothing reads at most these, the last one and segments."""

SEGMENT_BYTES = 64_000
"""Bytes of compact JSON above which a segment ends earlier."""

Turns = Sequence[TranscribedTurn]


@dataclass(frozen=True, slots=True)
class SegmentWriter:
    """Writes the segments of a tenant's sessions."""

    tenant: str
    store: TurnStore

    async def write_due(
        self, agent_id: str, session_id: str, turns: Turns, *, end: str | None, complete: bool, expires_at: int | None
    ) -> str | None:
        """Write the segments that are due, oldest first, and return the end of the newest known segment.

        `turns` are successive turns of a session without its last one, which may change. `end` is the last turn of the
        newest known segment, None if none is known. `complete`: `turns` begins with the session's first turn.
        `expires_at` is that of the session. Nothing is raised: without a segment, the next reader reads turns.
        """
        after, rest = uncovered(turns, end, complete=complete)
        try:
            for part in due_parts(rest):
                if after is not None and part[0].turn_id <= after:  # another process's segment has these turns
                    continue
                if not reads_back_equal(part):
                    logger.warning("A segment of a history would not read back equal", extra={"session_id": session_id})
                    return end
                after = end = await self.store.put_segment(
                    self.tenant, agent_id, session_id, part, after=after, expires_at=expires_at
                )
        except Exception:  # nothing may be raised here, because the turn has ended
            logger.warning("A segment of a history was not written", exc_info=True, extra={"session_id": session_id})
        return end


def uncovered(turns: Turns, end: str | None, *, complete: bool) -> tuple[str | None, Turns]:
    """Return the end of the segment before, and the turns after it.

    If turns before the first one may have no segment, the first one counts as the end of a segment: a reader that needs
    older turns then notices the gap.
    """
    if end is None and complete:
        return None, turns
    place = next((place for place, turn in enumerate(turns) if turn.turn_id == end), 0)
    return (turns[place].turn_id, turns[place + 1 :]) if turns else (end, turns)


def due_parts(turns: Turns) -> Iterator[Turns]:
    """Yield the turns of each segment that is due.

    A segment ends with an answer of the model, because a shield may replace the messages since the last answer.
    """
    first = size = stored = 0
    for place, turn in enumerate(turns):
        stored += turn.size
        if stored >= SEGMENT_BYTES:  # otherwise the compact form, which takes time to write, is smaller
            size = len(Segment.of(turns[first : place + 1]).to_json(exclude_none=True))
        is_full = place + 1 - first >= SEGMENT_TURNS or size >= SEGMENT_BYTES
        if is_full and is_answered(turns[first : place + 1]):
            yield turns[first : place + 1]
            first, size, stored = place + 1, 0, 0


def reads_back_equal(turns: Turns) -> bool:
    written = Segment.of(turns).to_json(exclude_none=True)
    return Segment.model_validate_json(written).to_turns() == list(turns)


def is_answered(turns: Turns) -> bool:
    """Return whether the last message of some turns is an answer."""
    last = next((turn.messages[-1] for turn in reversed(turns) if turn.messages), None)
    return isinstance(last, AssistantAnswer)


class SessionRecorder:
    """Records the end of a turn. `past` has the session's turns before it; `history_bytes` limits what is kept."""

    def __init__(
        self,
        cache: TranscriptCache,
        writer: SegmentWriter,
        lease: SessionLease,
        past: SessionTranscript,
        history_bytes: int,
    ) -> None:
        self.cache = cache
        self.writer = writer
        self.lease = lease
        self.past = past
        self.history_bytes = history_bytes
        self.ended: SessionTranscript | None = None

    @property
    def key(self) -> Key:
        return self.lease.tenant, self.lease.agent_id, self.lease.session_id

    def record_end(self, turn: StoredTurn) -> None:
        """Remember the session with a turn whose ending is stored."""
        end = LastTurn(turn.header.turn_id, len(turn.records))
        measured = StoredTurn(turn.header, [*turn.records], turn.size, turn.skipped)
        ended = self.past.extended(History([measured], self.past.complete, end))
        self.ended = ended.fitted(self.history_bytes)
        if self.ended.starts_with_result:
            self.cache.forget(self.key)
        else:
            self.cache.put(self.key, self.ended)

    async def write_segments(self) -> None:
        """Write the segments that are due since the turn ended. Nothing is raised."""
        ended = self.ended
        if ended is None:
            return
        end = await self.writer.write_due(
            self.lease.agent_id,
            self.lease.session_id,
            ended.turns,
            end=ended.segment_end,
            complete=ended.complete,
            expires_at=self.lease.expires_at,
        )
        if end != ended.segment_end and self.cache.get(self.key) is ended:
            self.cache.put(self.key, replace(ended, segment_end=end))
