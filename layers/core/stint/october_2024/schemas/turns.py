"""Sessions, turns, steps and events of the API of October 2024.

The id of a turn is `{session_id}:{turn_id}`, because the client sends no session with it.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.content import URL
from stint.domain.fields import Omitted
from stint.domain.limits import MessageLimit, PartLimit
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.session_budgets import SessionBudget, SpentBudget
from stint.domain.steps import SafetyViolation, StepType
from stint.october_2024.schemas.memory import BankDefinition
from stint.october_2024.schemas.messages import (
    OctoberAnswer,
    OctoberContent,
    OctoberToolCall,
    OctoberTurnMessage,
)


class OctoberAttachment(Request):
    """A file: its content, or the URL of it as a string or an object with a `uri`."""

    content: OctoberContent | URL
    mime_type: str


class OctoberToolResponse(Schema):
    call_id: str
    tool_name: str
    content: OctoberContent


class OctoberStepCommon(Schema):
    turn_id: str
    step_id: str
    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None


class OctoberInferenceStep(OctoberStepCommon):
    step_type: Literal["inference"] = "inference"
    model_response: OctoberAnswer


class OctoberToolExecutionStep(OctoberStepCommon):
    step_type: Literal["tool_execution"] = "tool_execution"
    tool_calls: list[OctoberToolCall]
    tool_responses: list[OctoberToolResponse]


class OctoberShieldCallStep(OctoberStepCommon):
    step_type: Literal["shield_call"] = "shield_call"
    violation: SafetyViolation | None = None


class OctoberMemoryRetrievalStep(OctoberStepCommon):
    step_type: Literal["memory_retrieval"] = "memory_retrieval"
    memory_bank_ids: list[str]
    inserted_context: OctoberContent


OctoberStep = Annotated[
    OctoberInferenceStep | OctoberToolExecutionStep | OctoberShieldCallStep | OctoberMemoryRetrievalStep,
    Field(discriminator="step_type"),
]


class OctoberStepResponse(Schema):
    step: OctoberStep


class OctoberTurn(Schema):
    """A turn. The calls of its output message are answered by the first message of the next turn."""

    turn_id: str
    session_id: str
    input_messages: list[OctoberTurnMessage]
    steps: list[OctoberStep]
    output_message: OctoberAnswer
    output_attachments: list[OctoberAttachment] = Field(default_factory=list)
    started_at: Timestamp
    completed_at: Timestamp | None = None


class OctoberSession(Schema):
    """A session. `memory_bank` has the attachments of its turns, and is missing without any, as is `budget`."""

    session_id: str
    session_name: str
    turns: list[OctoberTurn] = Field(default_factory=list)
    started_at: Timestamp
    memory_bank: Omitted[BankDefinition] = None
    budget: Omitted[SpentBudget] = None


class OctoberSessionCreateRequest(Request):
    agent_id: str
    session_name: str
    budget: Omitted[SessionBudget] = None


class OctoberSessionName(Request):
    agent_id: str
    session_id: str


class OctoberSessionQuery(OctoberSessionName):
    """A session, and the turns of it that are wanted; all by default."""

    turn_ids: list[str] | None = None


class OctoberTurnName(Request):
    agent_id: str
    turn_id: str


class OctoberStepName(OctoberTurnName):
    step_id: str


class OctoberTurnCreateRequest(Request):
    agent_id: str
    session_id: str
    messages: Annotated[list[OctoberTurnMessage], MessageLimit, PartLimit]
    attachments: Annotated[list[OctoberAttachment], PartLimit] = Field(default_factory=list)
    stream: bool = False


class OctoberToolCallDelta(Schema):
    """A piece of a tool call as text, or the whole call."""

    content: str | OctoberToolCall
    parse_status: Literal["started", "in_progress", "failure", "success"]


class OctoberTurnStart(Schema):
    event_type: Literal["turn_start"] = "turn_start"
    turn_id: str


class OctoberStepStart(Schema):
    event_type: Literal["step_start"] = "step_start"
    step_type: StepType
    step_id: str
    metadata: dict[str, Any] = Field(default_factory=dict)


class OctoberStepProgress(Schema):
    """The progress of a step. Beside a tool call, the model's text is empty, because clients print it."""

    event_type: Literal["step_progress"] = "step_progress"
    step_type: StepType
    step_id: str
    model_response_text_delta: str | None = None
    tool_call_delta: OctoberToolCallDelta | None = None
    tool_response_text_delta: str | None = None


class OctoberStepComplete(Schema):
    event_type: Literal["step_complete"] = "step_complete"
    step_type: StepType
    step_details: OctoberStep


class OctoberTurnComplete(Schema):
    event_type: Literal["turn_complete"] = "turn_complete"
    turn: OctoberTurn


OctoberPayload = Annotated[
    OctoberTurnStart | OctoberStepStart | OctoberStepProgress | OctoberStepComplete | OctoberTurnComplete,
    Field(discriminator="event_type"),
]


class OctoberTurnEvent(Schema):
    payload: OctoberPayload


class OctoberTurnChunk(Schema):
    """The data of an event of a turn, and the response of a turn without `stream`."""

    event: OctoberTurnEvent
