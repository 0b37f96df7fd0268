"""Turns: requests and the API's representation.

The objects of Llama Stack 0.2.12, with extensions of this server. A `Turn` is never stored: it is derived from the log
of `stored_turns.py`.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StrictBool

from stint.domain.approvals import Approval
from stint.domain.content import URL, Content, Document
from stint.domain.fields import Omitted
from stint.domain.inference import ResponseFormat, Usage
from stint.domain.limits import MAX_ANSWER_CALLS, MAX_INFER_ITERS, MessageLimit, PartLimit
from stint.domain.llama_stack.sampling import SamplingStrategy
from stint.domain.messages import InputMessage
from stint.domain.receipts import Receipt
from stint.domain.run_outcome import ErrorInfo
from stint.domain.run_signals import OnDisconnect
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.steps import CompletionMessage, Step, StepType
from stint.domain.tools import (
    AgentToolGroup,
    ElicitedForm,
    NewClientTools,
    NewToolGroups,
    SystemMessageBehavior,
    ToolChoiceOrName,
    ToolDef,
    ToolPromptFormat,
    ToolResponse,
)
from stint.domain.when_busy import WhenBusy


class TurnStatus(StrEnum):  # that of its last run; a docstring would be a text of the API
    in_progress = "in_progress"
    """It has no ending yet."""
    awaiting_input = "awaiting_input"
    """It waits for results of the client's tools."""
    completed = "completed"
    """The answer is complete."""
    failed = "failed"
    """It ended with an error."""
    cancelled = "cancelled"
    """A client or an admin ended it."""


class TurnSummary(Schema):
    """The last turn of a session in a list, with the status that reading the turn would show."""

    turn_id: str
    started_at: Timestamp
    status: TurnStatus


class Attachment(Schema):
    """A document that a tool produced."""

    content: Content | URL
    mime_type: str


class UnfinishedStep(Schema):
    """The step in which a turn failed or was cancelled. It is not among the turn's steps."""

    step_type: StepType
    step_id: str
    started_at: Timestamp


class Turn(Schema):
    """A turn as the API returns it. `usage` is null if the model's provider counted nothing.

    `pending_approvals` has the ids of those calls of the output message that wait for the client's approval.
    `pending_arguments` has the args of the agent and the turn that replace arguments of these calls, by their ids.
    `pending_inputs` has the forms of those calls whose servers ask the client, by the calls' ids and the forms' keys.
    """

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
    receipt: Receipt | None = None
    unfinished_step: Omitted[UnfinishedStep] = None
    pending_approvals: Omitted[list[str]] = None
    pending_arguments: Omitted[dict[str, dict[str, Any]]] = None
    pending_inputs: Omitted[dict[str, dict[str, ElicitedForm]]] = None


class SamplingOverride(Schema):
    """The sampling parameters of the agent that a turn overrides."""

    strategy: SamplingStrategy | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    repetition_penalty: float | None = None
    stop: list[str] | None = None


class ToolConfigOverride(Schema):
    """The tool configuration of the agent that a turn overrides."""

    tool_choice: ToolChoiceOrName | None = None
    tool_prompt_format: ToolPromptFormat | None = None
    system_message_behavior: SystemMessageBehavior | None = None


class TurnOverrides(Request):
    """Overrides of the agent's configuration for one turn. Null keeps the agent's value.

    Toolgroups and approvals are added to the agent's. All other fields replace the agent's.
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
    require_approval: Omitted[Approval] = None


class TurnCreateRequest(TurnOverrides):
    """The request of a turn, within the limits of a request. `when_busy` replaces the agent's."""

    messages: Annotated[list[InputMessage], MessageLimit, PartLimit]
    toolgroups: NewToolGroups = Field(default_factory=list)
    client_tools: NewClientTools | None = None
    max_infer_iters: int | None = Field(default=None, ge=0, le=MAX_INFER_ITERS)
    documents: Annotated[list[Document], PartLimit] = Field(default_factory=list)
    stream: bool = False
    when_busy: WhenBusy | None = None
    on_disconnect: OnDisconnect = "continue"


class ToolApproval(Request):
    """The client's answer to a call that waits for approval. The model gets the `reason` of a denied one.

    `input` is what is filled into the form of a call whose server asks.
    """

    call_id: str
    approve: StrictBool
    reason: Omitted[str] = None
    input: Omitted[dict[str, Any]] = None


class TurnResumeRequest(Request):
    """The answers to all calls that a turn waits for: results, and approvals of those that need one."""

    tool_responses: Annotated[list[ToolResponse], PartLimit]
    approvals: Omitted[Annotated[list[ToolApproval], Field(max_length=MAX_ANSWER_CALLS)]] = None
    stream: bool = False
    on_disconnect: OnDisconnect = "continue"
