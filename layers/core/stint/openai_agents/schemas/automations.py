"""Automations of OpenAI's Agents API: requests and objects.

An automation is `periodic` or `once`, and its target a new session for each run or an existing one. Neither changes
later: an update has the fields of both types, and those of the other type are refused when the automation is known.

An automation stores no secret, since its runs have no request that could bring one: servers get credentials of vaults.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator
from typing_extensions import TypeAliasType

from stint.domain.fields import KnownTypes, Metadata, Nothing, Omitted, UnsupportedField, invalid, missing
from stint.domain.limits import ToolLimit
from stint.domain.openai.automations import (
    AutomationName,
    AutomationStatus,
    Expression,
    InvocationError,
    InvocationStatus,
    PauseReason,
    RunAt,
    TimezoneName,
)
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Request, Schema
from stint.domain.session_budgets import SessionBudget
from stint.openai_agents.schemas.agents import AgentConfigObject, AgentFields, ModelName
from stint.openai_agents.schemas.contents import AgentInputMessage, AgentInputMessages, LongText
from stint.openai_agents.schemas.sessions import Name, NoEnvironment, SessionEnvironment, VaultIds
from stint.openai_agents.schemas.tools import (
    KNOWN_TOOLS,
    TRANSPORTS,
    AgentFunctionTool,
    SavedHttpTransport,
    SavedMcpTool,
    ServerSideTool,
    check_tools,
)

NO_SECRETS = "An automation stores no secrets. Put the credential into a vault, and set vault_ids of the target"
ONE_AGENT = "Set either agent or agent_id of the target, not both."

RunTime = Annotated[RunAt, Strict()]


def refuse_authorization(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Refuse the header Authorization. Raises PydanticCustomError."""
    if any(name.strip().lower() == "authorization" for name in headers):
        raise invalid(f"{NO_SECRETS}.")
    return headers


class AutomationTransport(SavedHttpTransport):
    """The address of an MCP server, without credentials."""

    authorization: Annotated[Nothing, UnsupportedField(NO_SECRETS)] = None

    @model_validator(mode="after")
    def refuse_credentials(self) -> Self:
        refuse_authorization(self.headers)
        return self


class AutomationMcpTool(SavedMcpTool):
    """The tools of an MCP server. Its credential is one of the target's vaults."""

    transport: Annotated[AutomationTransport, BeforeValidator(TRANSPORTS)]


AutomationTool = Annotated[
    Annotated[AgentFunctionTool | AutomationMcpTool | ServerSideTool, Field(discriminator="type")],
    BeforeValidator(KNOWN_TOOLS),
]


class AutomationAgentParams(AgentFields):
    """The agent of each new session."""

    model: ModelName
    tools: Annotated[list[AutomationTool], ToolLimit, AfterValidator(check_tools)] | None = None


class NewSessionParams(Request):
    """A session to create for each run, with its first messages. Its agent is a saved one, or its own.

    `budget`, which OpenAI's API lacks, limits what each session spends.
    """

    type: Literal["new_session"]
    environment: SessionEnvironment
    input: AgentInputMessages
    agent_id: Name | None = None
    agent: AutomationAgentParams | None = None
    metadata: Metadata = Field(default_factory=dict)
    vault_ids: VaultIds = Field(default_factory=list)
    budget: SessionBudget | None = None

    @model_validator(mode="after")
    def require_agent(self) -> Self:
        if self.agent is None and self.agent_id is None:
            raise missing("agent_id", "or set agent for an agent of each session alone")
        if self.agent is not None and self.agent_id is not None:
            raise invalid(ONE_AGENT)
        return self

    @model_validator(mode="after")
    def require_vaults(self) -> Self:
        tools = (self.agent.tools if self.agent else None) or []
        if not self.vault_ids and any(isinstance(tool, AutomationMcpTool) and tool.credential_id for tool in tools):
            raise missing("vault_ids", "an MCP tool has a credential_id, which is looked for in them")
        return self


class ExistingSessionParams(Request):
    """A session that gets the instructions as a message of the user at each run."""

    type: Literal["existing_session"]
    session_id: Name
    instructions: Annotated[LongText, Field(min_length=1)]


AutomationTargetParams = Annotated[
    Annotated[NewSessionParams | ExistingSessionParams, Field(discriminator="type")],
    BeforeValidator(KnownTypes("target", ("new_session", "existing_session"))),
]


class PeriodicAutomationParams(Request):
    """An automation with a cron expression of five fields, and the IANA name of its time zone."""

    type: Literal["periodic"]
    name: AutomationName
    expression: Expression
    timezone: TimezoneName
    target: AutomationTargetParams
    metadata: Metadata = Field(default_factory=dict)


class OneTimeAutomationParams(Request):
    """An automation that runs once. `run_at` is in Unix seconds."""

    type: Literal["once"]
    name: AutomationName
    run_at: RunTime
    target: AutomationTargetParams
    metadata: Metadata = Field(default_factory=dict)


AutomationCreateParams = TypeAliasType(
    "AutomationCreateParams",
    Annotated[
        Annotated[PeriodicAutomationParams | OneTimeAutomationParams, Field(discriminator="type")],
        BeforeValidator(KnownTypes("automation", ("periodic", "once"))),
    ],
)
"""A type with a name: FastAPI would apply the discriminator of a plain union after the validator."""


class AutomationUpdateParams(Request):
    """The changed fields of an automation. Null changes nothing. `target` and `metadata` replace the whole field."""

    name: AutomationName | None = None
    expression: Expression | None = None
    timezone: TimezoneName | None = None
    run_at: RunTime | None = None
    target: AutomationTargetParams | None = None
    metadata: Metadata | None = None


class AutomationAgentObject(AgentConfigObject):
    """The agent of each new session. It has no id before there is a session."""


class NewSessionObject(Schema):
    type: Literal["new_session"] = "new_session"
    environment: NoEnvironment = Field(default_factory=NoEnvironment)
    agent_id: str | None = None
    agent: AutomationAgentObject | None = None
    input: list[AgentInputMessage]
    metadata: dict[str, str] = Field(default_factory=dict)
    vault_ids: list[str] = Field(default_factory=list)
    budget: Omitted[SessionBudget] = None


class ExistingSessionObject(Schema):
    type: Literal["existing_session"] = "existing_session"
    session_id: str
    instructions: str


AutomationTargetObject = Annotated[NewSessionObject | ExistingSessionObject, Field(discriminator="type")]


class DeveloperObject(Schema):
    """The creator of each automation. Agents create none."""

    type: Literal["developer"] = "developer"


class AutomationFields(Schema):
    """The fields of both types of automations. Times are Unix seconds. `pause_reason`: the server has paused it."""

    id: str
    object: Literal["agent.automation"] = "agent.automation"
    created_at: int
    created_by: DeveloperObject = Field(default_factory=DeveloperObject)
    name: str
    target: AutomationTargetObject
    metadata: dict[str, str] = Field(default_factory=dict)
    pause_reason: PauseReason | None = None


class PeriodicAutomationObject(AutomationFields):
    type: Literal["periodic"] = "periodic"
    status: Literal["active", "paused"]
    expression: str
    timezone: str


class OneTimeAutomationObject(AutomationFields):
    """An automation that runs once. `completed` does not mean that the agent's work has ended."""

    type: Literal["once"] = "once"
    status: AutomationStatus
    run_at: int


AutomationObject = Annotated[PeriodicAutomationObject | OneTimeAutomationObject, Field(discriminator="type")]


class AutomationList(ListObject[AutomationObject]):
    """A page of automations."""


class AutomationDeleted(Schema):
    id: str
    object: Literal["agent.automation.deleted"] = "agent.automation.deleted"
    deleted: Literal[True] = True


class ManualSource(Schema):
    """A request has started the run."""

    type: Literal["manual"] = "manual"


class ScheduledSource(Schema):
    """The schedule has started the run. `automation` is what it was at that time."""

    type: Literal["automation"] = "automation"
    automation: AutomationObject


class AutomationInvocationObject(Schema):
    """A run. `completed`: the session has the message, which the agent may not have answered. Times: Unix seconds."""

    id: str
    object: Literal["agent.automation.invocation"] = "agent.automation.invocation"
    automation_id: str
    created_at: int
    scheduled_at: int | None = None
    session_id: str | None = None
    source: Annotated[ManualSource | ScheduledSource, Field(discriminator="type")]
    status: InvocationStatus
    skip_reason: Literal["pending_delivery"] | None = None
    error: InvocationError | None = None


class AutomationInvocationList(ListObject[AutomationInvocationObject]):
    """A page of invocations."""
