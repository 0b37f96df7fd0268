"""Sessions of OpenAI's Agents API: requests, the events that are sent to them, and objects.

Requests are strict where a field changes the meaning: a value that cannot be honoured is refused with a message that
names the field and what to do (`SupportedValues`, `KnownTypes`). Hints are read and have no effect. In updates, null
clears a field and a missing field stays, so readers look at `model_fields_set`.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from stint.domain.fields import KnownTypes, Metadata, Nothing, Omitted, SupportedValues, UnsupportedField, missing
from stint.domain.inference import Effort
from stint.domain.limits import PartLimit
from stint.domain.openai.input_items import CallId
from stint.domain.openai.vaults import MAX_VAULTS_OF_SESSION
from stint.domain.schema import Request, Schema
from stint.domain.session_budgets import SessionBudget, SpentBudget
from stint.domain.tools import ElicitedForm
from stint.openai_agents.schemas.agents import AgentServiceTier, ModelName, SessionAgentObject, SessionAgentParams
from stint.openai_agents.schemas.contents import (
    AgentInput,
    AgentInputMessages,
    FunctionOutput,
    LongText,
)
from stint.openai_agents.schemas.tools import SessionMcpTool, SessionTools
from stint.openai_agents.schemas.turns import AgentCacheOptions, AgentUsage

MAX_EVENTS = 20
"""Maximum events of a request."""

FIXED = "The field of a session cannot be changed. Remove it, or create another session"
NO_REVIEW = "Automatic review is not supported. Remove review, or set it to none"

Name = Annotated[str, Field(min_length=1, max_length=200)]


def unique(names: list[str]) -> list[str]:
    """Return the names, each once."""
    return list(dict.fromkeys(names))


VaultIds = Annotated[list[Name], Field(max_length=MAX_VAULTS_OF_SESSION), AfterValidator(unique)]
OfNewSessions = Annotated[Nothing, UnsupportedField(FIXED)]
"""The type of a field of a session that no update changes."""

Review = Annotated[Omitted[str], SupportedValues(("none",), NO_REVIEW), Field(exclude=True)]


class NoEnvironment(Request):
    """The environment of all sessions: none."""

    type: Literal["none"] = "none"


SessionEnvironment = Annotated[
    NoEnvironment,
    BeforeValidator(
        KnownTypes(
            "environment",
            ("none",),
            {
                "openai_hosted": "the server hosts no sandboxes: set the type to none",
                "self_hosted": "sessions connect to no environments: set the type to none",
            },
        )
    ),
]


class SessionStreamOptions(Request):
    """`include_obfuscation` pads the deltas of the stream, so that their sizes reveal nothing."""

    include_obfuscation: StrictBool = True


class SessionCreateParams(Request):
    """A session to create, with its first input. Without `agent_id`, the agent's model is required.

    `budget`, which OpenAI's API lacks, limits what all its turns spend.
    """

    environment: SessionEnvironment
    agent_id: Name | None = None
    agent: SessionAgentParams | None = None
    input: AgentInput | None = None
    stream: StrictBool = False
    stream_options: SessionStreamOptions = Field(default_factory=SessionStreamOptions)
    metadata: Metadata = Field(default_factory=dict)
    vault_ids: VaultIds = Field(default_factory=list)
    review: Review = None
    prompt_cache_options: AgentCacheOptions | None = None
    budget: SessionBudget | None = None

    @model_validator(mode="after")
    def require_input(self) -> Self:
        if self.input is None:
            raise missing("input", "without an environment a session begins with a message")
        return self

    @model_validator(mode="after")
    def require_vaults(self) -> Self:
        tools = (self.agent.tools if self.agent else None) or []
        if not self.vault_ids and any(isinstance(tool, SessionMcpTool) and tool.credential_id for tool in tools):
            raise missing("vault_ids", "an MCP tool has a credential_id, which is looked for in them")
        return self


class AgentEffort(Request):
    """The effort of the reasoning. A missing one stays, and null is the model's default."""

    effort: Effort | None = None


class SessionAgentUpdate(Request):
    """The fields of a session's agent that can change. Null clears tools, and resets the other settings."""

    model: ModelName | None = None
    reasoning: AgentEffort | None = None
    service_tier: AgentServiceTier | None = None
    tools: SessionTools | None = None
    instructions: OfNewSessions = None
    text: OfNewSessions = None
    multi_agent: OfNewSessions = None
    experimental: OfNewSessions = None
    input_shields: OfNewSessions = None
    output_shields: OfNewSessions = None


class SessionUpdateParams(Request):
    """The changed fields of a session: `model_fields_set` has their names. Null clears them."""

    agent: SessionAgentUpdate | None = None
    metadata: Metadata | None = None
    vault_ids: OfNewSessions = None
    agent_id: OfNewSessions = None
    budget: OfNewSessions = None
    review: Review = None
    prompt_cache_options: AgentCacheOptions | None = None


class MessageEvent(Request):
    """Messages of the user: they start a turn, or steer the running one."""

    type: Literal["agent.session.input.message"]
    input: AgentInputMessages


class CancelEvent(Request):
    """Cancels the running turn."""

    type: Literal["agent.session.input.cancel"]


class ToolResultEvent(Request):
    """The result of a function call: its output, or the error of one without success."""

    type: Literal["agent.session.input.tool_result"]
    turn_id: Name
    call_id: CallId
    success: StrictBool
    output: Annotated[FunctionOutput | None, Field()] = None
    error: LongText | None = None


class ApprovalDecision(Request):
    """`cancel` dismisses the request only. `input` fills in the form of a server that asks: an extension."""

    type: Literal["mcp_tool_call"]
    decision: Literal["approve", "deny", "cancel"]
    input: Omitted[dict[str, Any]] = None


class ApprovalEvent(Request):
    """The decision about a call of an MCP server's tool."""

    type: Literal["agent.session.input.mcp_approval_request_result"]
    request_id: Name
    response: ApprovalDecision


POSTED_TYPES = tuple(
    f"agent.session.input.{name}" for name in ("message", "cancel", "tool_result", "mcp_approval_request_result")
)
PostedEvent = Annotated[
    Annotated[MessageEvent | CancelEvent | ToolResultEvent | ApprovalEvent, Field(discriminator="type")],
    BeforeValidator(
        KnownTypes(
            "event",
            POSTED_TYPES,
            {"agent.session.input.computer_use_approval_request_result": "no computer asks for approval"},
        )
    ),
]


class SessionEventsParams(Request):
    """Events for a session, which takes all or none of them."""

    events: Annotated[list[PostedEvent], Field(min_length=1, max_length=MAX_EVENTS), PartLimit]


class RequiredFunctionCall(Schema):
    """A call that waits for the client's result."""

    type: Literal["function_call"] = "function_call"
    turn_id: str
    call_id: str
    name: str
    arguments: dict[str, Any] | str


class ApprovalRequestDetails(Schema):
    """The call to approve. `forms` are those of a server that asks, by their keys: an extension."""

    type: Literal["mcp_tool_call"] = "mcp_tool_call"
    server_label: str
    name: str | None = None
    arguments: dict[str, Any] | str | None = None
    message: str
    forms: Omitted[dict[str, ElicitedForm]] = None


class RequiredApproval(Schema):
    """A call of an MCP server's tool that waits for the client's approval."""

    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    request_id: str
    turn_id: str
    request: ApprovalRequestDetails


RequiredAction = Annotated[RequiredFunctionCall | RequiredApproval, Field(discriminator="type")]
PublicSessionStatus = Literal["idle", "in_progress", "requires_action", "failed"]


class AgentSessionObject(Schema):
    """A session. Times are Unix seconds. `idle` does not mean that the last turn succeeded.

    `budget`, which OpenAI's API lacks, is missing without one.
    """

    id: str
    object: Literal["agent.session"] = "agent.session"
    created_at: int
    last_active_at: int
    status: PublicSessionStatus
    agent: SessionAgentObject
    environment: NoEnvironment = Field(default_factory=NoEnvironment)
    metadata: dict[str, str] = Field(default_factory=dict)
    required_actions: list[RequiredAction] = Field(default_factory=list)
    usage: AgentUsage | None = None
    error: str | None = None
    vault_ids: list[str] = Field(default_factory=list)
    review: Literal["none"] = "none"
    prompt_cache_options: Omitted[AgentCacheOptions] = None
    budget: Omitted[SpentBudget] = None


class AgentSessionDeleted(Schema):
    id: str
    object: Literal["agent.session.deleted"] = "agent.session.deleted"
    deleted: Literal[True] = True
