"""The messages that a turn takes while it runs, in its events. `turn_replay.py` makes the same of its records."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.run_events import StepStart, StepStartWithInput

T = TypeVar("T")


class InputNotes:
    """Adds the messages that a turn has taken to the event of the step that follows them."""

    def __init__(self, turn: StoredTurn) -> None:
        self._turn = turn
        self._noted = len(turn.merged)

    def note(self, event: T) -> T | StepStartWithInput:
        """Return the event, with the messages that were taken since the last step if it starts one."""
        if not isinstance(event, StepStart) or len(merged := self._turn.merged) == self._noted:
            return event
        taken, self._noted = merged[self._noted :], len(merged)
        return StepStartWithInput(
            step_type=event.step_type, step_id=event.step_id, metadata=event.metadata, taken=taken
        )

    def note_all(self, events: Iterable[T]) -> "Iterator[T | StepStartWithInput]":
        return map(self.note, events)
