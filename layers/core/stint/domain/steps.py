"""Steps of a turn. Each is a record of the turn's log.

The log, the events and the answers of the API have the same fields, in Llama Stack's order. A field that Stint adds is
omitted if it has no value, so that records of earlier releases are read and shown as they are.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.content import Content
from stint.domain.fields import Omitted
from stint.domain.inference import Usage
from stint.domain.receipts import DIGITS, Count
from stint.domain.schema import Schema, Timestamp
from stint.domain.tools import ToolCall, ToolResponse

StopReason = Literal["end_of_turn", "end_of_message", "out_of_tokens"]


class CompletionMessage(Schema):
    """An answer of the model.

    With `end_of_message`, the client runs the tool calls and resumes. With `end_of_turn` and `out_of_tokens`, there
    is nothing to do.
    """

    role: Literal["assistant"] = "assistant"
    content: Content = ""
    stop_reason: StopReason = "end_of_turn"
    tool_calls: list[ToolCall] = Field(default_factory=list)


class StepCommon(Schema):
    turn_id: str
    step_id: str
    started_at: Timestamp
    completed_at: Timestamp | None = None


class StepUsage(Schema):
    """The tokens of a model call, as `Usage` has them, without counts of 0.

    `dollars` are its price. They are omitted if the price of the model is not known, or hidden.
    """

    input_tokens: int
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    cache_write_1h_tokens: Count = 0
    output_tokens: int
    reasoning_tokens: Count = 0
    dollars: Omitted[float] = None

    @classmethod
    def of(cls, usage: Usage, dollars: float | None) -> "StepUsage":
        # A total is none of its fields.
        return cls(**usage.__dict__, dollars=None if dollars is None else round(dollars, DIGITS))


class InferenceStep(StepCommon):
    """A model call. `first_token_ms` are the milliseconds from its request to its first token, if they were measured.

    A token is a piece of text, of reasoning, or of a tool call. `usage` is omitted if the provider counted nothing.
    """

    step_type: Literal["inference"] = "inference"
    model_response: CompletionMessage
    first_token_ms: Omitted[int] = None
    usage: Omitted[StepUsage] = None


class ToolExecutionStep(StepCommon):
    step_type: Literal["tool_execution"] = "tool_execution"
    tool_calls: list[ToolCall]
    tool_responses: list[ToolResponse]

    def without_large_images(self) -> "ToolExecutionStep | None":
        """Return the step as models get it; None if it has no large image."""
        shown = [response.without_image() for response in self.tool_responses]
        if not any(shown):
            return None
        kept = [new or old for new, old in zip(shown, self.tool_responses, strict=True)]
        return self.model_copy(update={"tool_responses": kept})


class SafetyViolation(Schema):
    violation_level: Literal["info", "warn", "error"]
    user_message: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class ShieldCallStep(StepCommon):
    """A check by shields. `metadata` is that of its start event if it is the check of a tool: of its call or result."""

    step_type: Literal["shield_call"] = "shield_call"
    violation: SafetyViolation | None = None
    metadata: Omitted[dict[str, str]] = None


class MemoryRetrievalStep(StepCommon):
    step_type: Literal["memory_retrieval"] = "memory_retrieval"
    vector_db_ids: str
    inserted_context: Content


Step = Annotated[
    InferenceStep | ToolExecutionStep | ShieldCallStep | MemoryRetrievalStep, Field(discriminator="step_type")
]


def without_images(step: Step | None, early: Sequence[Step] | None) -> dict[str, Any]:
    """Return those fields of a record that have large images, without these."""
    changed: dict[str, Any] = {}
    if isinstance(step, ToolExecutionStep) and (shown := step.without_large_images()):
        changed["step"] = shown
    small = [each.without_large_images() if isinstance(each, ToolExecutionStep) else None for each in early or ()]
    if any(small):
        changed["early"] = [new or old for new, old in zip(small, early or (), strict=True)]
    return changed


StepType = Literal["inference", "tool_execution", "shield_call", "memory_retrieval"]


class StepResponse(Schema):
    """The response to GET step."""

    step: Step
