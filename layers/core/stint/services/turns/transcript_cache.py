"""The transcripts that a warm process keeps."""

from collections import OrderedDict

from stint.domain.limits import memory_of
from stint.services.turns.session_transcript import SessionTranscript

Key = tuple[str, str, str]
"""Tenant, agent and session."""

SESSION_BYTES = 2_000
"""Memory of a session besides its turns."""


class TranscriptCache:
    """The transcripts of the sessions used last, up to `max_bytes` of memory."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._entries: OrderedDict[Key, tuple[SessionTranscript, int]] = OrderedDict()

    def get(self, key: Key) -> SessionTranscript | None:
        """Return the transcript of a session; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Key, transcript: SessionTranscript) -> None:
        """Keep a transcript in place of an older one of the session, and drop those that were not used for longest."""
        self.forget(key)
        size = SESSION_BYTES + sum(turn.memory for turn in transcript.turns) + memory_of(transcript.last)
        if size > self.max_bytes:
            return
        self._entries[key] = transcript, size
        self.bytes += size
        while self.bytes > self.max_bytes:
            _, (_, dropped) = self._entries.popitem(last=False)
            self.bytes -= dropped

    def forget(self, key: Key) -> None:
        """Drop the transcript of a session, if there is one."""
        _, size = self._entries.pop(key, (None, 0))
        self.bytes -= size
