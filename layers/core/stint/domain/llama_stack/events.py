"""The events of a turn: a closed union, with exactly one terminal event at the end of every run."""

from typing import Annotated, Literal

from pydantic import Field

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_events import ReasoningEnded, ReasoningProgress, StepComplete, StepEvent, StepProgress, StepStart
from stint.domain.schema import Schema


class TurnStart(Schema):
    event_type: Literal["turn_start"] = "turn_start"
    turn_id: str


class TurnComplete(Schema):
    event_type: Literal["turn_complete"] = "turn_complete"
    turn: Turn


class TurnAwaitingInput(Schema):
    event_type: Literal["turn_awaiting_input"] = "turn_awaiting_input"
    turn: Turn


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The end of a turn that failed. `turn` has the steps that were stored."""

    error: StintError
    turn: Turn


TerminalEvent = TurnComplete | TurnAwaitingInput | TurnFailed
Payload = Annotated[
    TurnStart | StepStart | StepProgress | StepComplete | TurnComplete | TurnAwaitingInput,
    Field(discriminator="event_type"),
]
Event = TurnStart | StepEvent | ReasoningProgress | ReasoningEnded | TerminalEvent
"""An event of a turn. Reasoning is only in those of a run whose request shows it, and has no number of its own."""


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event of a turn. The turn's start event has the number 0, and the streams of its resumes continue to count."""

    number: int
    event: Event
