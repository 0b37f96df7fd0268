"""The events of a turn from its log, with the numbers of its first stream.

A position in a stream is the number of an event, so a replay must make the same events as the run did, in any process:

    in the log                                   events of the replay
    a step                                       its start, its pieces as they were cut (`text_lengths`), its end
    a step after a pause: the client's results   its end only, as the resume announced it
    an unfinished step of an ended turn          its start and its pieces
    messages that the turn has taken             a part of the start of the next step (`input_notes.py`)
    reasoning                                    none: a turn does not store it
"""

from collections.abc import Iterable, Iterator

from stint.domain.inference import AnswerDetails
from stint.domain.llama_stack.events import (
    Event,
    NumberedEvent,
    TerminalEvent,
    TurnAwaitingInput,
    TurnComplete,
    TurnFailed,
    TurnStart,
)
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.partial_steps import PartialStep
from stint.domain.run_events import (
    LoopEvent,
    ReasoningEnded,
    ReasoningProgress,
    RunEnded,
    StepComplete,
    StepEvent,
)
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.loop.step_events import StepReplay
from stint.services.turns.input_notes import InputNotes


class TurnReplay:
    """Makes the events of a turn, record by record. `stored` has the records so far, and `count` is that of its events.

    A resumed turn continues its numbers.
    """

    def __init__(self, header: TurnHeader) -> None:
        self.stored = StoredTurn(header)
        self.count = 0
        self._steps = StepReplay()
        self._input = InputNotes(self.stored)

    def emit_start(self) -> Iterator[NumberedEvent]:
        yield from self._number([TurnStart(turn_id=self.stored.header.turn_id)])

    def emit_records(self, records: Iterable[TurnRecord]) -> Iterator[NumberedEvent]:
        """Add records of the log, and yield their events."""
        for record in records:
            yield from self._number(self._record_events(record))

    def emit_partial(self, partial: PartialStep) -> Iterator[NumberedEvent]:
        """Yield the events of the unfinished step that were not yielded yet."""
        yield from self._number(self._partial_events(partial))

    def _record_events(self, record: TurnRecord) -> Iterator[Event]:
        resumes = self.stored.ending is not None
        if resumes:  # what follows checks the client's input
            self._steps.after_answer = False
        self.stored.records.append(record)
        if record.step is not None and resumes:  # the client's results, which are announced as a whole
            yield StepComplete(step_type=record.step.step_type, step_id=record.step.step_id, step_details=record.step)
        elif record.step is not None and not record.unannounced:
            details = AnswerDetails(text_lengths=record.text_lengths)
            yield from self._input.note_all(shown(self._steps.emit_step(record.step, details)))
        if record.unfinished is not None:
            yield from self._partial_events(record.unfinished)
        if record.ending is not None:
            yield terminal_event(self.stored, record.ending)

    def _partial_events(self, partial: PartialStep) -> Iterator[Event]:
        """Yield the events of an unfinished step. The stored step has no reasoning, so it is not counted here."""
        return self._input.note_all(shown(self._steps.emit_partial(partial.without_reasoning())))

    def _number(self, events: Iterable[Event]) -> Iterator[NumberedEvent]:
        for event in events:
            self.count += 1
            yield NumberedEvent(self.count - 1, event)


def shown(events: Iterable[LoopEvent]) -> Iterator[StepEvent]:
    """Yield the events of the loop that the Agents API has."""
    for event in events:
        if not isinstance(event, ReasoningProgress | ReasoningEnded | RunEnded):
            yield event


def terminal_event(turn: StoredTurn, ending: RunOutcome) -> TerminalEvent:
    """Return the event of an ending, which is the turn's last record."""
    if ending.status is RunStatus.awaiting_input:
        return TurnAwaitingInput(turn=turn.to_turn())
    if ending.status is RunStatus.failed and ending.error is not None:
        error = ending.error.to_error()
        error.turn_id = turn.header.turn_id
        return TurnFailed(error, turn.to_turn())
    return TurnComplete(turn=turn.to_turn())


def count_events(turn: StoredTurn) -> int:
    """Return the number of a turn's events so far, that of its next event."""
    return sum(1 for _ in replay_turn(turn))


def replay_turn(turn: StoredTurn) -> Iterator[NumberedEvent]:
    """Yield the events of a turn so far."""
    replay = TurnReplay(turn.header)
    yield from replay.emit_start()
    yield from replay.emit_records(turn.records)
