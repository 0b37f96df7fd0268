"""Events of AG-UI 1.0 that a run sends.

Those of one message, call or span form a group with one id: a start, any number of pieces, and an end. What AG-UI has
no field for is in `metadata`, with names that begin with `stint/`. A null field is not written.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.ag_ui.schemas.messages import MessageContent, ShownMessage, WireSchema
from stint.domain.fields import Omitted

PROTOCOL_VERSION = "1.0"


class RunMetadata(WireSchema):
    """The ids of the session and the turn of a run in the other APIs.

    The calls of frontend tools that wait beside interrupts are here, because the outcome of these has no other field.
    """

    session_id: Annotated[str, Field(alias="stint/session_id")]
    turn_id: Annotated[Omitted[str], Field(alias="stint/turn_id")] = None
    pending_tool_call_ids: Annotated[Omitted[list[str]], Field(alias="stint/pending_tool_call_ids")] = None


class RunUsage(WireSchema):
    """Token counts of the model calls of a run. The other counts are parts of the first two."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    reasoning_tokens: int
    cached_input_tokens: int
    cache_write_input_tokens: int


class RunStartedEvent(WireSchema):
    type: Literal["RUN_STARTED"] = "RUN_STARTED"
    thread_id: str
    run_id: str
    protocol_version: str = PROTOCOL_VERSION
    metadata: Omitted[RunMetadata] = None


class StateSnapshotEvent(WireSchema):
    type: Literal["STATE_SNAPSHOT"] = "STATE_SNAPSHOT"
    snapshot: Any


class MessagesSnapshotEvent(WireSchema):
    type: Literal["MESSAGES_SNAPSHOT"] = "MESSAGES_SNAPSHOT"
    messages: list[ShownMessage]


class StepEvent(WireSchema):
    type: Literal["STEP_STARTED", "STEP_FINISHED"]
    step_name: str


class TextStartEvent(WireSchema):
    type: Literal["TEXT_MESSAGE_START"] = "TEXT_MESSAGE_START"
    message_id: str
    role: Literal["assistant"] = "assistant"


class TextContentEvent(WireSchema):
    type: Literal["TEXT_MESSAGE_CONTENT"] = "TEXT_MESSAGE_CONTENT"
    message_id: str
    delta: str


class TextEndEvent(WireSchema):
    type: Literal["TEXT_MESSAGE_END"] = "TEXT_MESSAGE_END"
    message_id: str


class ReasoningSpanEvent(WireSchema):
    type: Literal["REASONING_START", "REASONING_MESSAGE_END", "REASONING_END"]
    message_id: str


class ReasoningStartEvent(WireSchema):
    type: Literal["REASONING_MESSAGE_START"] = "REASONING_MESSAGE_START"
    message_id: str
    role: Literal["reasoning"] = "reasoning"


class ReasoningContentEvent(WireSchema):
    type: Literal["REASONING_MESSAGE_CONTENT"] = "REASONING_MESSAGE_CONTENT"
    message_id: str
    delta: str


class ToolStartEvent(WireSchema):
    type: Literal["TOOL_CALL_START"] = "TOOL_CALL_START"
    tool_call_id: str
    tool_call_name: str
    parent_message_id: str


class ToolArgsEvent(WireSchema):
    type: Literal["TOOL_CALL_ARGS"] = "TOOL_CALL_ARGS"
    tool_call_id: str
    delta: str


class ToolEndEvent(WireSchema):
    type: Literal["TOOL_CALL_END"] = "TOOL_CALL_END"
    tool_call_id: str


class ToolCallResultEvent(WireSchema):
    type: Literal["TOOL_CALL_RESULT"] = "TOOL_CALL_RESULT"
    message_id: str
    tool_call_id: str
    content: MessageContent
    role: Literal["tool"] = "tool"


class InterruptingCall(WireSchema):
    """The call that an interrupt is about, with the arguments with which it would run."""

    tool_name: Annotated[str, Field(alias="stint/tool_name")]
    arguments: Annotated[dict[str, Any] | str, Field(alias="stint/arguments")]


class Interrupt(WireSchema):
    """A call that waits for approval."""

    id: str
    reason: Literal["tool_call"] = "tool_call"
    message: str
    tool_call_id: str
    response_schema: dict[str, Any]
    metadata: InterruptingCall


class SuccessOutcome(WireSchema):
    """The run is complete, but for the calls of frontend tools that wait for their results."""

    type: Literal["success"] = "success"
    pending_tool_call_ids: Omitted[list[str]] = None


class InterruptOutcome(WireSchema):
    type: Literal["interrupt"] = "interrupt"
    interrupts: list[Interrupt]


class CancelledOutcome(WireSchema):
    type: Literal["cancelled"] = "cancelled"


Outcome = Annotated[SuccessOutcome | InterruptOutcome | CancelledOutcome, Field(discriminator="type")]


class RunFinishedEvent(WireSchema):
    type: Literal["RUN_FINISHED"] = "RUN_FINISHED"
    thread_id: str
    run_id: str
    outcome: Outcome
    usage: Omitted[list[RunUsage]] = None
    metadata: Omitted[RunMetadata] = None


class RunErrorEvent(WireSchema):
    """The end of a run that failed. `metadata` has the ids of the run, if it has begun."""

    type: Literal["RUN_ERROR"] = "RUN_ERROR"
    message: str
    code: str
    usage: Omitted[list[RunUsage]] = None
    metadata: Omitted[RunMetadata] = None


TurnPartEvent = (
    StepEvent
    | TextStartEvent
    | TextContentEvent
    | TextEndEvent
    | ReasoningSpanEvent
    | ReasoningStartEvent
    | ReasoningContentEvent
    | ToolStartEvent
    | ToolArgsEvent
    | ToolEndEvent
    | ToolCallResultEvent
    | RunFinishedEvent
    | RunErrorEvent
)
"""An event that is made of those of a turn."""

AgUiEvent = Annotated[
    RunStartedEvent | StateSnapshotEvent | MessagesSnapshotEvent | TurnPartEvent, Field(discriminator="type")
]
