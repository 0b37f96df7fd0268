"""Events of a run of the loop: steps, their progress, and the end.

The loop yields them, and each API converts them to the events of its own stream.

    StepStart           a step begins
    StepProgress        a piece of its text, a call, or an image
    ReasoningProgress   a piece of the reasoning before it
    ReasoningEnded      the reasoning is complete
    StepComplete        the step is stored; CompactionComplete for that of a compaction
    RunEnded            no event follows
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.dataclasses import dataclass
from stint.domain.inference import Reasoning
from stint.domain.messages import InputMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import Schema
from stint.domain.steps import Step, StepType, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall


class TextDelta(Schema):
    type: Literal["text"] = "text"
    text: str


class RefusalDelta(TextDelta):
    """A piece of a refusal. In the Agents API it is ordinary text."""


class ToolCallDelta(Schema):
    """A tool call, or the text of one that cannot be parsed."""

    type: Literal["tool_call"] = "tool_call"
    tool_call: ToolCall | str
    parse_status: Literal["started", "in_progress", "succeeded", "failed"]


class ImageDelta(Schema):
    """An image that a tool generated, in base64."""

    type: Literal["image"] = "image"
    image: str


def call_delta(call: ToolCall) -> ToolCallDelta:
    """Return the delta of a call that is complete."""
    if isinstance(call.arguments, str):
        return ToolCallDelta(tool_call=call.arguments, parse_status="failed")
    return ToolCallDelta(tool_call=call, parse_status="succeeded")


Delta = TextDelta | ToolCallDelta
"""A piece of an answer."""


class TakenMessage(Schema):
    """A message that a run has taken while it was running."""

    message_id: str
    input_messages: list[InputMessage]


class StepStart(Schema):
    event_type: Literal["step_start"] = "step_start"
    step_type: StepType
    step_id: str
    metadata: dict[str, Any] = Field(default_factory=dict)


class StepStartWithInput(StepStart):
    """The start of a step before which a turn has taken messages. Llama Stack's API does not show these."""

    taken: Annotated[Sequence[TakenMessage], Field(exclude=True)]


class StepProgress(Schema):
    event_type: Literal["step_progress"] = "step_progress"
    step_type: StepType
    step_id: str
    delta: Annotated[TextDelta | ToolCallDelta | ImageDelta, Field(discriminator="type")]


def image_events(step: ToolExecutionStep) -> Iterator[StepProgress]:
    """Yield the images that the tools of a step generated."""
    for response in step.tool_responses:
        if (image := response.generated_image) is not None:
            yield StepProgress(step_type=step.step_type, step_id=step.step_id, delta=ImageDelta(image=image))


class StepComplete(Schema):
    """A stored step."""

    event_type: Literal["step_complete"] = "step_complete"
    step_type: StepType
    step_id: str
    step_details: Step


class CompactionComplete(StepComplete):
    """A stored compaction, with the step that shows it in the Agents API."""

    compaction: Annotated[CompactedHistory, Field(exclude=True)]


@dataclass(frozen=True, slots=True)
class ReasoningProgress:
    """A piece of the model's reasoning. The Agents API has no event for it."""

    step_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """The complete reasoning, before the first text or call of the answer."""

    step_id: str
    reasoning: Reasoning


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of the loop. The run is complete, or waits for the client."""

    status: RunStatus


StepEvent = StepStart | StepProgress | StepComplete


LoopEvent = StepEvent | ReasoningProgress | ReasoningEnded | RunEnded
