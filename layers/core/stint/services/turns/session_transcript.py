"""The ended turns of a session as the model sees them.

A warm process keeps it, and a cold one derives the same messages from the store. So every operation here depends on
stored turns alone, and returns a new object.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence, Set
from functools import cached_property

from stint.dataclasses import dataclass, field, replace
from stint.domain.inference import ModelMessage, ToolResult, UserInput
from stint.domain.limits import memory_of
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.transcribed_turns import TranscribedTurn
from stint.domain.run_outcome import RunStatus
from stint.domain.steps import InferenceStep
from stint.loop.transcript import Transcript
from stint.services.turns.history import add_compactions, add_turn
from stint.store.sessions import LastTurn
from stint.store.turns import History

Key = tuple[str, str, str]
"""Tenant, agent and session."""

SESSION_BYTES = 2_000
"""Memory of a session besides its turns."""


@dataclass(frozen=True)
class SessionTranscript:
    """A session's turns in creation order: those before the last one as messages, and the last one as it is stored.

    Turns that a later one has compacted are left out, as if the session began with that one.
    It is never changed, so that a process can keep it.
    """

    turns: Sequence[TranscribedTurn] = ()
    """The turns before the last one."""

    last: StoredTurn | None = None
    end: LastTurn | None = None
    """The end of the history that this has."""

    complete: bool = True
    """Whether no turn was omitted."""

    segment_end: str | None = None
    """The last turn of the newest known segment."""

    calls: Set[str] | None = frozenset()
    """The ids of the model's calls in `turns`; None if these were read from segments, which do not have them."""

    earlier: Transcript = field(default_factory=Transcript, repr=False)
    """The messages of `turns`."""

    @classmethod
    def of(cls, history: History) -> "SessionTranscript":
        """Transcribe a history, whose older turns may come from segments."""
        turns = since_compaction(history.transcribed)
        end = turns[-1].turn_id if turns else None
        calls = None if turns else frozenset[str]()
        older = cls(turns=turns, complete=history.complete, segment_end=end, calls=calls, earlier=read_messages(turns))
        return older.without_input({turn.retry_of for turn in turns}).extended(history)

    @property
    def turn_id(self) -> str:
        """Return the id of the last turn, or an empty text."""
        return self.last.header.turn_id if self.last else ""

    @property
    def count(self) -> int:
        """Count the turns."""
        return len(self.turns) + (self.last is not None)

    @property
    def starts_with_result(self) -> bool:
        """Return whether the first message is the result of a call in an omitted turn.

        Providers refuse it, and a transcript that is read without that turn has a note in its place.
        """
        return bool(self.earlier.messages) and isinstance(self.earlier.messages[0], ToolResult)

    @property
    def is_running(self) -> bool:
        """Return whether the last turn has not ended."""
        return self.last is not None and self.last.status is RunStatus.in_progress

    @cached_property
    def size(self) -> int:
        """Count the bytes of JSON of the stored turns."""
        return sum(turn.size for turn in self.turns) + context_size_of(self.last)

    @property
    def uncompacted(self) -> int:
        """Count the bytes of JSON of the stored turns since the last compaction."""
        if self.last is not None and self.last.compactions:
            return 0
        return context_size_of(self.last) + sum(turn.size for turn in self.turns if not turn.compacted)

    def transcript(self, without: str = "") -> Transcript:
        """Return the messages of all turns, to which others can be appended.

        `without` is a failed turn that the next one repeats.
        """
        transcript = self.without_input({without}).earlier.copy()
        if self.last is not None:
            add = add_turn if self.turn_id != without else add_compactions
            add(transcript, self.last)
        return transcript

    def without_input(self, turn_ids: Set[str]) -> "SessionTranscript":
        """Return the transcript without the user's messages of those turns before the last one that others repeat."""
        if not any(turn.turn_id in turn_ids for turn in self.turns):
            return self
        turns = [without_user(turn) if turn.turn_id in turn_ids else turn for turn in self.turns]
        return replace(self, turns=turns, earlier=read_messages(turns))

    def extended(self, history: History) -> "SessionTranscript":
        """Return the transcript with the turns of a history, whose first one may be a newer state of the last one."""
        if not history.turns:
            return self
        *others, last = history.turns
        if self.last is not None and self.turn_id != history.turns[0].header.turn_id:
            others.insert(0, self.last)
        repeated = {turn.header.retry_of for turn in history.turns}
        before = self.without_input(repeated)
        earlier, turns = transcribe_turns(before.earlier, before.turns, others, repeated)
        calls = None if self.calls is None else self.calls | calls_of(others)
        found = replace(self, turns=turns, last=last, end=history.last, calls=calls, earlier=earlier)
        begins_anew = turns[:1] != before.turns[:1] and any(turn.compacted for turn in turns[:1])
        return replace(found, complete=True, segment_end=None) if begins_anew else found

    def fitted(self, max_bytes: int) -> "SessionTranscript":
        """Return the transcript of newest turns that fit into `max_bytes` of JSON, at least the last one."""
        if self.last is None or not self.turns or (self.complete and self.size <= max_bytes):
            return self
        from stint.domain.history_cut import choose_first  # noqa: PLC0415 - few histories are too long

        ids = [*(turn.turn_id for turn in self.turns), self.last.header.turn_id]
        sizes = [*(turn.size for turn in self.turns), context_size_of(self.last)]
        if (first := choose_first(ids, sizes, max_bytes)) == 0:
            return self
        turns = self.turns[first:]
        return replace(self, turns=turns, earlier=read_messages(turns), complete=False)


def transcribe_turns(
    earlier: Transcript, before: Sequence[TranscribedTurn], turns: Iterable[StoredTurn], repeated: Set[str]
) -> tuple[Transcript, Sequence[TranscribedTurn]]:
    """Add turns to a transcript, and return it with the messages of each turn. Those `repeated` by others have none.

    The turns before one with a compaction are left out.
    """
    transcript, transcribed = earlier.copy(), [*before]
    for turn in turns:
        start, compacted = len(transcript.messages), 0
        add = add_compactions if turn.header.turn_id in repeated else add_turn
        add(transcript, turn)
        if turn.compactions:
            transcribed, start, compacted = [], 0, transcript.compacted
        else:
            renew_messages(transcribed, transcript.messages[:start])
        messages, size = tuple(transcript.messages[start:]), context_size_of(turn)
        transcribed.append(
            TranscribedTurn(turn.header.turn_id, size, messages, turn.header.retry_of, compacted=compacted)
        )
    return transcript, transcribed


def since_compaction(turns: Sequence[TranscribedTurn]) -> Sequence[TranscribedTurn]:
    """Return the turns from the last one on that replaces those before it."""
    return turns[max((place for place, turn in enumerate(turns) if turn.compacted), default=0) :]


def context_size_of(turn: StoredTurn | None) -> int:
    """Count the bytes of JSON of a turn that later model calls need."""
    return turn.size - turn.skipped if turn is not None else 0


def without_user(turn: TranscribedTurn) -> TranscribedTurn:
    """Return a turn without the messages of its user."""
    own = [each for each in turn.messages[turn.compacted :] if not isinstance(each, UserInput)]
    return replace(turn, messages=(*turn.messages[: turn.compacted], *own))


def renew_messages(turns: list[TranscribedTurn], messages: Sequence[ModelMessage]) -> None:
    """Take over messages that a later turn has replaced, because an input shield blocked them.

    All messages since the last answer are replaced, so the search ends at a turn whose messages are unchanged.
    """
    end = len(messages)
    for place in reversed(range(len(turns))):
        turn = turns[place]
        start = end - len(turn.messages)
        found = tuple(messages[start:end])
        if found and all(one is other for one, other in zip(found, turn.messages, strict=True)):
            return
        turns[place] = replace(turn, messages=found)
        end = start


def calls_of(turns: Iterable[StoredTurn]) -> frozenset[str]:
    """Return the ids of the calls that the model made in some turns."""
    answers = (step.model_response for turn in turns for step in turn.steps if isinstance(step, InferenceStep))
    return frozenset(call.call_id for answer in answers for call in answer.tool_calls)


def read_messages(turns: Iterable[TranscribedTurn]) -> Transcript:
    """Return a transcript of the messages of turns, of which the first one may begin with a summary."""
    transcript = Transcript()
    for turn in turns:
        for message in turn.messages:
            transcript.append_message(message)
        transcript.compacted = turn.compacted or transcript.compacted
    return transcript


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
