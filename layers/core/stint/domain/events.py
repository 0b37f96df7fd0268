"""What a turn can emit: a closed union, with exactly one terminal event at the end of every run."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.errors import StintError
from stint.domain.inference import Reasoning
from stint.domain.schema import Schema
from stint.domain.steps import Step, StepType
from stint.domain.tools import ToolCall
from stint.domain.turns import Turn, TurnStatus


class TextDelta(Schema):
    type: Literal["text"] = "text"
    text: str


class RefusalDelta(TextDelta):
    """Text by which the model declines to answer; the Agents API shows it as any other text."""


class ToolCallDelta(Schema):
    """A tool call, or the text of one that could not be parsed."""

    type: Literal["tool_call"] = "tool_call"
    tool_call: ToolCall | str
    parse_status: Literal["started", "in_progress", "succeeded", "failed"]


Delta = Annotated[TextDelta | ToolCallDelta, Field(discriminator="type")]


class TurnStart(Schema):
    event_type: Literal["turn_start"] = "turn_start"
    turn_id: str


class StepStart(Schema):
    event_type: Literal["step_start"] = "step_start"
    step_type: StepType
    step_id: str
    metadata: dict[str, Any] = Field(default_factory=dict)


class StepProgress(Schema):
    event_type: Literal["step_progress"] = "step_progress"
    step_type: StepType
    step_id: str
    delta: Delta


class StepComplete(Schema):
    """A step that is stored."""

    event_type: Literal["step_complete"] = "step_complete"
    step_type: StepType
    step_id: str
    step_details: Step


class TurnComplete(Schema):
    event_type: Literal["turn_complete"] = "turn_complete"
    turn: Turn


class TurnAwaitingInput(Schema):
    event_type: Literal["turn_awaiting_input"] = "turn_awaiting_input"
    turn: Turn


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """The end of a turn that did not succeed; `turn` shows what was kept of it."""

    error: StintError
    turn: Turn


@dataclass(frozen=True, slots=True)
class ReasoningProgress:
    """A piece of what the model thinks before it answers; the Agents API has no event for it."""

    step_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """All that the model thought, before the first word or call of its answer."""

    step_id: str
    reasoning: Reasoning


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The loop's last event: the run is complete, or waits for the client."""

    status: TurnStatus


StepEvent = StepStart | StepProgress | StepComplete
TerminalEvent = TurnComplete | TurnAwaitingInput | TurnFailed
Payload = Annotated[
    TurnStart | StepStart | StepProgress | StepComplete | TurnComplete | TurnAwaitingInput,
    Field(discriminator="event_type"),
]
LoopEvent = StepEvent | ReasoningProgress | ReasoningEnded | RunEnded
Event = TurnStart | StepEvent | TerminalEvent
