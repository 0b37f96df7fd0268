"""Agents: a stored configuration that sessions run with.

The objects are those of Llama Stack 0.2.12, with extensions of this server.
"""

from typing import Any

from pydantic import Field, model_validator

from stint.domain.approvals import Approval
from stint.domain.context_management import ContextManagements
from stint.domain.fields import Metadata, Omitted
from stint.domain.inference import ReasoningSettings, ResponseFormat, ServiceTier, Verbosity
from stint.domain.limits import MAX_INFER_ITERS
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.schema import Request, Schema, Timestamp
from stint.domain.tools import (
    AgentToolGroup,
    NewClientTools,
    NewToolGroups,
    ToolChoice,
    ToolConfig,
    ToolDef,
    ToolPromptFormat,
)
from stint.domain.when_busy import WhenBusy


class ToolShieldNames(Request):
    """The shields of a tool: those of the arguments of its calls, and those of their results."""

    input_shields: list[str] = Field(default_factory=list)
    output_shields: list[str] = Field(default_factory=list)


class AgentConfig(Request):
    """The configuration of an agent. `tool_choice` and `tool_prompt_format` are deprecated forms of `tool_config`.

    `when_busy` is what a new turn does while another one runs in its session. `tool_shields` has the shields of single
    tools, by the names of the tools. `context_management` is OpenAI's: when the history of a session is compacted.
    So are `reasoning`, `verbosity` and `service_tier`, options of each model call, and `metadata`, which is kept as it
    is. `require_approval` has the calls that wait for approval, by the names of the tools, of all that the server runs.
    """

    sampling_params: SamplingParams = Field(default_factory=SamplingParams)
    input_shields: list[str] = Field(default_factory=list)
    output_shields: list[str] = Field(default_factory=list)
    toolgroups: list[AgentToolGroup] = Field(default_factory=list)
    client_tools: list[ToolDef] = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    tool_prompt_format: ToolPromptFormat | None = None
    tool_config: ToolConfig = Field(default_factory=ToolConfig)
    max_infer_iters: int = Field(default=10, ge=0)
    model: str
    instructions: str
    name: str | None = None
    enable_session_persistence: bool = False
    response_format: ResponseFormat | None = None
    when_busy: Omitted[WhenBusy] = None
    tool_shields: Omitted[dict[str, ToolShieldNames]] = None
    require_approval: Omitted[Approval] = None
    context_management: Omitted[ContextManagements] = None
    reasoning: Omitted[ReasoningSettings] = None
    verbosity: Omitted[Verbosity] = None
    service_tier: Omitted[ServiceTier] = None
    metadata: Omitted[Metadata] = None

    @model_validator(mode="before")
    @classmethod
    def fill_tool_config(cls, data: Any) -> Any:
        """Copy the deprecated fields into `tool_config` if it is absent."""
        if not isinstance(data, dict) or data.get("tool_config") is not None:
            return data
        deprecated = {key: data[key] for key in ("tool_choice", "tool_prompt_format") if data.get(key) is not None}
        return {**data, "tool_config": deprecated}

    @model_validator(mode="after")
    def refuse_contradiction(self) -> "AgentConfig":
        for key in ("tool_choice", "tool_prompt_format"):
            value = getattr(self, key)
            if value is not None and value != getattr(self.tool_config, key):
                raise ValueError(f"{key} is deprecated. Use {key} in tool_config instead.")
        return self


class NewAgentConfig(AgentConfig):
    """The configuration of an agent to be created, within the limits of a request."""

    toolgroups: NewToolGroups = Field(default_factory=list)
    client_tools: NewClientTools = Field(default_factory=list)
    max_infer_iters: int = Field(default=10, ge=0, le=MAX_INFER_ITERS)


class Agent(Schema):
    """An agent. `updated_at` is the time of its latest change; missing for one that was never changed."""

    agent_id: str
    agent_config: AgentConfig
    created_at: Timestamp
    updated_at: Omitted[Timestamp] = None


class AgentList(Schema):
    """A page of agents. `has_more`: others follow, or may follow, after the id `next_after`."""

    data: list[Agent]
    has_more: bool
    url: str
    next_after: Omitted[str] = None


class AgentCreateRequest(Request):
    agent_config: NewAgentConfig


class AgentCreateResponse(Schema):
    agent_id: str
