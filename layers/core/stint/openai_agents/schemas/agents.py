"""Agents of OpenAI's Agents API: requests and objects.

Null clears a field of an update, and a field that is missing stays: `model_fields_set` tells them apart. Fields that
change the meaning of an agent and cannot be honoured are refused by name. Hints are accepted and shown.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictBool, StrictInt, field_validator

from stint.domain.fields import KnownTypes, Metadata, Omitted, SupportedValues, invalid
from stint.domain.inference import ReasoningSettings, Verbosity
from stint.domain.openai.response_options import PlainText
from stint.domain.schema import Request, Schema
from stint.openai_agents.schemas.contents import LongText
from stint.openai_agents.schemas.tools import AgentToolObject, SavedTools, SessionTools

AgentServiceTier = Literal["auto", "default", "flex", "priority", "fast", "ultrafast"]
ModelName = Annotated[str, Field(min_length=1, max_length=1000)]
AgentName = Annotated[str, Field(max_length=512)]
ShieldNames = Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=100)]

NO_SUBAGENTS = "Subagents are not supported. Remove multi_agent, or set enabled to false"
NO_TIME = "The model gets no reminders of the time. Remove time_awareness, or set it to false"


class AgentJsonSchema(Request):
    """The text is JSON of this schema."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    type: Literal["json_schema"] = "json_schema"
    json_schema: Annotated[dict[str, Any], Field(alias="schema")]


AgentTextFormat = Annotated[
    Annotated[PlainText | AgentJsonSchema, Field(discriminator="type")],
    BeforeValidator(
        KnownTypes("text format", ("text", "json_schema"), {"json_object": "use json_schema with type object"})
    ),
]


class AgentText(Request):
    """The form of the model's text. `verbosity` is a hint."""

    format: AgentTextFormat = Field(default_factory=PlainText)
    verbosity: Verbosity = "medium"


class MultiAgentParams(Request):
    """Subagents, which are not supported. Without them their number has no effect."""

    enabled: Annotated[StrictBool, SupportedValues((False,), NO_SUBAGENTS, kept=True)] = False
    max_concurrent_subagents: StrictInt | None = None


class CompactionParams(Request):
    """The compaction of long histories. `async` is a hint: it happens between two model calls."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    asynchronous: Annotated[StrictBool, Field(alias="async")] = False


class ExperimentalParams(Request):
    time_awareness: Annotated[StrictBool, SupportedValues((False,), NO_TIME, kept=True)] = False


class AgentFields(Request):
    """The optional fields that agents and sessions have in common. The default of each is null, which clears it."""

    instructions: LongText | None = None
    reasoning: ReasoningSettings | None = None
    text: AgentText | None = None
    service_tier: AgentServiceTier | None = None
    multi_agent: MultiAgentParams | None = None
    compaction: CompactionParams | None = None
    experimental: ExperimentalParams | None = None
    input_shields: ShieldNames | None = None
    output_shields: ShieldNames | None = None


class AgentCreateParams(AgentFields):
    """A saved agent to create."""

    model: ModelName
    name: AgentName | None = None
    metadata: Metadata | None = None
    tools: SavedTools | None = None


class AgentUpdateParams(AgentFields):
    """The changed fields of a saved agent."""

    model: ModelName | None = None
    name: AgentName | None = None
    metadata: Metadata | None = None
    tools: SavedTools | None = None

    @field_validator("model")
    @classmethod
    def require_model(cls, model: str | None) -> str | None:
        if model is None:
            raise invalid("An agent needs a model. Leave the field out to keep it.")
        return model


class SessionAgentParams(AgentFields):
    """The agent of a session: each field that is given replaces the saved agent's."""

    model: ModelName | None = None
    tools: SessionTools | None = None


class MultiAgentObject(Schema):
    enabled: Literal[False] = False
    max_concurrent_subagents: None = None


class CompactionObject(Schema):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    asynchronous: Annotated[bool, Field(alias="async")] = False


class ExperimentalObject(Schema):
    time_awareness: bool = False


class AgentConfigObject(Schema):
    """The settings that each agent shows."""

    model: str
    instructions: str | None = None
    tools: list[AgentToolObject] = Field(default_factory=list)
    multi_agent: MultiAgentObject = Field(default_factory=MultiAgentObject)
    reasoning: ReasoningSettings = Field(default_factory=ReasoningSettings)
    service_tier: AgentServiceTier = "auto"
    text: AgentText = Field(default_factory=AgentText)
    compaction: CompactionObject = Field(default_factory=CompactionObject)
    experimental: ExperimentalObject = Field(default_factory=ExperimentalObject)
    input_shields: Omitted[list[str]] = None
    output_shields: Omitted[list[str]] = None


class AgentIdentity(Schema):
    id: str
    name: str | None = None


class AgentSettingsObject(AgentConfigObject, AgentIdentity):
    """The settings that an agent and the agent of a session show."""


class AgentObject(AgentSettingsObject):
    """A saved agent. Times are Unix seconds."""

    object: Literal["agent"] = "agent"
    created_at: int
    updated_at: int
    metadata: dict[str, str] = Field(default_factory=dict)


class SessionAgentObject(AgentSettingsObject):
    """The agent of a session, as it was when the session was created or last updated."""


class AgentDeleted(Schema):
    id: str
    object: Literal["agent.deleted"] = "agent.deleted"
    deleted: Literal[True] = True
