"""Recording of a turn that has ended, for the next turn of its session: the transcript, and segments of it."""

from stint.dataclasses import replace
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.services.turns.segments import SegmentWriter
from stint.services.turns.session_transcript import SessionTranscript
from stint.services.turns.transcript_cache import Key, TranscriptCache
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.turns import History


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
