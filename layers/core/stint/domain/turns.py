"""Turns: one exchange with an agent, kept as a header and an append-only log of records."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError

from stint.domain.content import URL, Content
from stint.domain.errors import StintError
from stint.domain.inference import ResponseFormat, SamplingStrategy, Usage
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.steps import CompletionMessage, InferenceStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.tools import (
    AgentToolGroup,
    SystemMessageBehavior,
    ToolCall,
    ToolChoiceOrName,
    ToolDef,
    ToolPromptFormat,
    ToolResponse,
    ToolResponseMessage,
)


class UserMessage(Request):
    """What the user says. `context` is stored with the turn and not shown to the model."""

    role: Literal["user"] = "user"
    content: Content
    context: Content | None = None


def role_of(message: Any) -> str:
    """Tell whose message it is; one without a role is the user's, unless it answers a call."""
    if not isinstance(message, dict):
        return str(getattr(message, "role", "user"))
    return str(message.get("role") or ("tool" if "call_id" in message else "user"))


InputMessage = Annotated[
    Annotated[UserMessage, Tag("user")] | Annotated[ToolResponseMessage, Tag("tool")],
    Discriminator(role_of, custom_error_type="role", custom_error_message="the role of a message is user or tool"),
]


class Document(Request):
    """A document that goes with the messages of a turn."""

    content: Content | URL
    mime_type: str


class DocumentText(Schema):
    """A document as the model reads it: fetched and turned into text once, when its turn began."""

    text: str
    mime_type: str


class Attachment(Schema):
    """A document that a tool produced."""

    content: Content | URL
    mime_type: str


class TurnStatus(StrEnum):
    in_progress = "in_progress"
    awaiting_input = "awaiting_input"
    completed = "completed"
    failed = "failed"
    cancelled = "cancelled"


class ErrorInfo(Schema):
    """Why a turn failed, in the words of the API's error body."""

    message: str
    type: str
    code: str
    param: str = ""

    @classmethod
    def of(cls, error: StintError) -> "ErrorInfo":
        return cls(message=error.message, type=error.type, code=error.code, param=error.param or "")


class Turn(Schema):
    """A turn as the API shows it. `usage` is null when the model's provider counted nothing."""

    turn_id: str
    session_id: str
    input_messages: list[InputMessage]
    steps: list[Step]
    output_message: CompletionMessage
    output_attachments: list[Attachment] = Field(default_factory=list)
    started_at: Timestamp
    completed_at: Timestamp | None = None
    status: TurnStatus
    usage: Usage | None = None
    error: ErrorInfo | None = None


class SamplingOverride(Schema):
    """The fields of the agent's sampling parameters that a turn replaces."""

    strategy: SamplingStrategy | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    repetition_penalty: float | None = None
    stop: list[str] | None = None


class ToolConfigOverride(Schema):
    """The fields of the agent's tool configuration that a turn replaces."""

    tool_choice: ToolChoiceOrName | None = None
    tool_prompt_format: ToolPromptFormat | None = None
    system_message_behavior: SystemMessageBehavior | None = None


class TurnOverrides(Request):
    """What a turn changes of its agent's configuration, for all its model calls: null leaves the agent's value.

    Toolgroups are added to the agent's; everything else takes the place of the agent's.
    """

    instructions: str | None = None
    sampling_params: SamplingOverride | None = None
    tool_config: ToolConfigOverride | None = None
    toolgroups: list[AgentToolGroup] = Field(default_factory=list)
    client_tools: list[ToolDef] | None = None
    input_shields: list[str] | None = None
    output_shields: list[str] | None = None
    max_infer_iters: int | None = Field(default=None, ge=0)
    response_format: ResponseFormat | None = None


class TurnCreateRequest(TurnOverrides):
    messages: list[InputMessage]
    documents: list[Document] = Field(default_factory=list)
    stream: bool = False


class TurnResumeRequest(Request):
    tool_responses: list[ToolResponse]
    stream: bool = False


class TurnHeader(Schema):
    """The first record of a turn: written once, before the turn is announced, and never rewritten."""

    turn_id: str
    session_id: str
    input_messages: list[InputMessage]
    documents: list[DocumentText] = Field(default_factory=list)
    started_at: Timestamp
    overrides: TurnOverrides


IncompleteReason = Literal["max_output_tokens", "max_tool_calls", "content_filter"]


class TurnEnding(Schema):
    """How a turn, or the part of it before a pause, ended. Nothing follows an ending but the one of a pause.

    `incomplete_reason` tells what cut a completed turn short.
    """

    status: TurnStatus
    completed_at: Timestamp
    usage: Usage | None = None
    error: ErrorInfo | None = None
    incomplete_reason: IncompleteReason | None = None


class TurnRecord(Schema):
    """One entry of a turn's log: a step, an ending, or the last step with the ending."""

    step: Step | None = None
    ending: TurnEnding | None = None

    @property
    def final(self) -> bool:
        return self.ending is not None and self.ending.status is not TurnStatus.awaiting_input


class PendingCalls(Schema):
    """The client tool calls a paused turn waits for; they become the step of this id when they are answered."""

    turn_id: str
    step_id: str
    started_at: Timestamp
    tool_calls: list[ToolCall]


@dataclass(slots=True)
class StoredTurn:
    """A turn as the store keeps it. `records` ends with the first final one; `size` is in bytes of JSON."""

    header: TurnHeader
    records: list[TurnRecord] = field(default_factory=list)
    size: int = 0

    @property
    def ending(self) -> TurnEnding | None:
        return self.records[-1].ending if self.records else None

    @property
    def status(self) -> TurnStatus:
        return self.ending.status if self.ending else TurnStatus.in_progress

    @property
    def steps(self) -> list[Any]:
        return [record.step for record in self.records if record.step is not None]

    def to_turn(self) -> Turn:
        """Derive the API's turn from the log."""
        ending = self.ending
        return Turn(
            turn_id=self.header.turn_id,
            session_id=self.header.session_id,
            input_messages=self.header.input_messages,
            steps=self.steps,
            output_message=output_message_of(self.steps, self.status),
            output_attachments=attachments_of(self.steps),
            started_at=self.header.started_at,
            completed_at=ending.completed_at if ending else None,
            status=self.status,
            usage=ending.usage if ending else None,
            error=ending.error if ending else None,
        )


def unanswered_calls(steps: list[Step]) -> list[ToolCall]:
    """List the tool calls of the last inference that no later tool execution has answered."""
    calls: dict[str, ToolCall] = {}
    for step in steps:
        if isinstance(step, InferenceStep):
            calls = {call.call_id: call for call in step.model_response.tool_calls}
        elif isinstance(step, ToolExecutionStep):
            for response in step.tool_responses:
                calls.pop(response.call_id, None)
    return list(calls.values())


def attachments_of(steps: list[Step]) -> list[Attachment]:
    """List what the tools of a turn produced for the user: the `attachments` of their responses' metadata."""
    responses = [response for step in steps if isinstance(step, ToolExecutionStep) for response in step.tool_responses]
    listed = [(response.metadata or {}).get("attachments") for response in responses]
    items = [item for attachments in listed if isinstance(attachments, list) for item in attachments]
    return [attachment for item in items if (attachment := attachment_of(item)) is not None]


def attachment_of(item: Any) -> Attachment | None:
    """Read an attachment; None when it is none, as metadata comes from tools and clients in any form."""
    try:
        return Attachment.model_validate(item)
    except ValidationError:
        return None


def output_message_of(steps: list[Step], status: TurnStatus) -> CompletionMessage:
    """Derive a turn's output message: what a shield says in its place, or the last answer.

    It bears tool calls only while the client is to run them.
    """
    last = steps[-1] if steps else None
    if isinstance(last, ShieldCallStep) and last.violation is not None and status is TurnStatus.completed:
        return CompletionMessage(content=last.violation.user_message or "")
    answers = [step.model_response for step in steps if isinstance(step, InferenceStep)]
    if not answers or status not in (TurnStatus.awaiting_input, TurnStatus.completed):
        return CompletionMessage()
    answer = answers[-1]
    if status is TurnStatus.awaiting_input:
        calls = unanswered_calls(steps)
        return CompletionMessage(content=answer.content, stop_reason="end_of_message", tool_calls=calls)
    reason = "out_of_tokens" if answer.stop_reason == "out_of_tokens" else "end_of_turn"
    return CompletionMessage(content=answer.content, stop_reason=reason)
