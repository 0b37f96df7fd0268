"""Conversion of agents of OpenAI's Agents API to their configurations, and back.

An agent of either API can be read by the other: what only Llama Stack has, such as sampling parameters, stays as it is
when an agent is changed here. A session has a configuration of its own, which changes of the saved agent do not reach.
"""

from collections.abc import Sequence, Set
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from stint.domain.context_management import ContextManagement
from stint.domain.errors import InvalidRequest
from stint.domain.inference import JsonSchemaResponseFormat, ReasoningSettings, ResponseFormat
from stint.domain.limits import MAX_INFER_ITERS
from stint.domain.llama_stack.agents import AgentConfig, NewAgentConfig
from stint.domain.llama_stack.sampling import SamplingParams, TopPSamplingStrategy
from stint.domain.openai.response_options import PlainText
from stint.domain.schema import Request
from stint.domain.validation import describe_faults
from stint.loop.structured_output import check_schema
from stint.openai_agents.agent_tools import from_tools, to_client_tools, to_toolgroups
from stint.openai_agents.schemas.agents import (
    AgentCreateParams,
    AgentJsonSchema,
    AgentObject,
    AgentServiceTier,
    AgentText,
    AgentUpdateParams,
    SessionAgentObject,
    SessionAgentParams,
)
from stint.openai_agents.schemas.sessions import AgentEffort, SessionAgentUpdate
from stint.openai_agents.schemas.tools import AnyTool

SHOWN_TIERS: dict[str, AgentServiceTier] = {
    "auto": "auto",
    "default": "default",
    "flex": "flex",
    "priority": "priority",
    "fast": "fast",
    "ultrafast": "ultrafast",
}


def to_agent_config(params: AgentCreateParams) -> AgentConfig:
    """Convert a new agent.

    Raises:
        InvalidRequest: a JSON schema is invalid, or the tools are too large.
    """
    return change(new_config(params.model), params, params.model_fields_set)


def update_agent_config(config: AgentConfig, params: AgentUpdateParams) -> AgentConfig:
    """Return the configuration of an agent with the fields that are given. Null clears them.

    Raises:
        InvalidRequest: as for a new agent.
    """
    return change(config, params, params.model_fields_set)


def to_session_config(saved: AgentConfig | None, params: SessionAgentParams | None) -> AgentConfig:
    """Return the configuration of a session: that of its saved agent, if it has one, with the fields that are given.

    Raises:
        InvalidRequest: there is no model; or as for a new agent.
    """
    model = params.model if params else None
    if saved is None and model is None:
        raise InvalidRequest("agent.model is required when agent_id is omitted", param="agent.model")
    config = new_config(model or "") if saved is None else with_session_fields(saved)
    if params is None:
        return config
    given = params.model_fields_set - ({"model"} if model is None else set())
    return change(config, params, given, "agent.")


def update_session_config(config: AgentConfig, params: SessionAgentUpdate) -> AgentConfig:
    """Return the configuration of a session with the fields that are given. Null clears them, except the model.

    Raises:
        InvalidRequest: the tools are too large.
    """
    return change(config, params, params.model_fields_set - ({"model"} if params.model is None else set()), "agent.")


def new_config(model: str) -> AgentConfig:
    """Return the configuration of an agent with a model and the defaults of this API."""
    # Sampling is the provider's: this API has no parameters of it, and models that reason refuse a temperature.
    sampling = SamplingParams(strategy=TopPSamplingStrategy(temperature=None, top_p=None))
    config = AgentConfig(model=model, instructions="", sampling_params=sampling, max_infer_iters=MAX_INFER_ITERS)
    return with_session_fields(config)


def with_session_fields(config: AgentConfig) -> AgentConfig:
    """Return a configuration for sessions of this API: stored, steered by messages, and compacted when too long."""
    compaction = config.context_management or [ContextManagement(type="compaction")]
    fields = {"enable_session_persistence": True, "when_busy": "merge", "context_management": compaction}
    return config.model_copy(update=fields)


def change(config: AgentConfig, params: Request, given: Set[str], path: str = "") -> AgentConfig:
    """Return a configuration with the given fields of a request, whose errors have a path before the field's name."""
    values = {name: getattr(params, name) for name in given}
    changes = {name: values[name] for name in given & {"model", "name", "service_tier"}}
    for name in given & {"input_shields", "output_shields"}:
        changes[name] = values[name] or []
    if "instructions" in given:
        changes["instructions"] = values["instructions"] or ""
    if "metadata" in given:
        changes["metadata"] = values["metadata"] or None
    if "reasoning" in given:
        changes["reasoning"] = change_reasoning(config.reasoning, values["reasoning"])
    if "text" in given:
        changes |= text_fields(values["text"], f"{path}text.format.schema")
    if "tools" in given:
        changes |= tool_fields(values["tools"] or [])
    return check(config.model_copy(update=changes), path)


def change_reasoning(
    before: ReasoningSettings | None, given: ReasoningSettings | AgentEffort | None
) -> ReasoningSettings | None:
    """Return the settings of the reasoning. An update of a session changes only the effort, if that is given."""
    if isinstance(given, AgentEffort):
        given = (before or ReasoningSettings()).model_copy(update=given.model_dump(exclude_unset=True))
    return given if given and (given.effort or given.summary) else None


def text_fields(text: AgentText | None, field: str) -> dict[str, Any]:
    """Return the fields of a configuration for the form of the text. Raises InvalidRequest for an invalid schema."""
    if text is None:
        return {"response_format": None, "verbosity": None}
    found: ResponseFormat | None = None
    if isinstance(text.format, AgentJsonSchema):
        check_schema(text.format.json_schema, field)
        found = JsonSchemaResponseFormat(json_schema={"schema": text.format.json_schema})
    return {"response_format": found, "verbosity": text.verbosity if "verbosity" in text.model_fields_set else None}


def tool_fields(tools: Sequence[AnyTool]) -> dict[str, Any]:
    return {"toolgroups": to_toolgroups(tools), "client_tools": to_client_tools(tools)}


def check(config: AgentConfig, path: str) -> AgentConfig:
    """Check the limits of a configuration. Raises InvalidRequest."""
    try:
        NewAgentConfig.model_validate(
            {
                "toolgroups": config.toolgroups,
                "client_tools": config.client_tools,
                "model": config.model,
                "instructions": "",
            }
        )
    except ValidationError as error:
        raise InvalidRequest(f"{path}tools: {describe_faults(error)}", param=f"{path}tools") from None
    return config


def from_agent(agent_id: str, config: AgentConfig, created_at: datetime, updated_at: datetime) -> AgentObject:
    """Convert a saved agent."""
    return AgentObject(
        **identity_of(agent_id, config),
        **settings_of(config, shows_headers=True),
        metadata=config.metadata or {},
        created_at=int(created_at.timestamp()),
        updated_at=int(updated_at.timestamp()),
    )


def from_session_agent(agent_id: str, config: AgentConfig) -> SessionAgentObject:
    """Convert the agent of a session."""
    return SessionAgentObject(**identity_of(agent_id, config), **settings_of(config, shows_headers=False))


def identity_of(agent_id: str, config: AgentConfig) -> dict[str, Any]:
    return {"id": agent_id, "name": config.name}


def settings_of(config: AgentConfig, *, shows_headers: bool) -> dict[str, Any]:
    """Return the fields that each agent shows."""
    return {
        "model": config.model,
        "instructions": config.instructions or None,
        "tools": from_tools(config, shows_headers=shows_headers),
        "reasoning": config.reasoning or ReasoningSettings(),
        "service_tier": SHOWN_TIERS.get(config.service_tier or "auto", "auto"),
        "text": text_of_config(config),
        "input_shields": config.input_shields or None,
        "output_shields": config.output_shields or None,
    }


def text_of_config(config: AgentConfig) -> AgentText:
    """Return the form of an agent's text. A schema is shown without the name that Llama Stack's clients may give it."""
    verbosity = config.verbosity or "medium"
    if not isinstance(config.response_format, JsonSchemaResponseFormat):
        return AgentText(format=PlainText(), verbosity=verbosity)
    given = config.response_format.json_schema
    wrapped = given.get("schema")
    schema = wrapped if isinstance(wrapped, dict) and "type" not in given else given
    return AgentText(format=AgentJsonSchema(json_schema=schema), verbosity=verbosity)
