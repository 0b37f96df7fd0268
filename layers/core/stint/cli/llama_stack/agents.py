"""Configurations of agents of other Llama Stack servers, of 0.2.12 and of October 2024."""

from collections.abc import Mapping
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotSupported
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.october_2024_agents import OctoberAgentConfig, ToolDefinition
from stint.services.october.agents import to_agent_config


@dataclass(frozen=True, slots=True)
class ImportedConfig:
    """A configuration, and the reasons why tools of October 2024 are not in it."""

    config: AgentConfig
    omitted: list[str]


def read_agent_config(value: Mapping[str, Any]) -> ImportedConfig:
    """Make a configuration of its JSON object. Raises ValueError (pydantic's ValidationError is one)."""
    if "tools" not in value or "toolgroups" in value:
        return ImportedConfig(AgentConfig.model_validate(value), [])
    old = OctoberAgentConfig.model_validate(value)
    reasons = {place: find_obstacle(old, tool) for place, tool in enumerate(old.tools)}
    usable = [tool for place, tool in enumerate(old.tools) if reasons[place] is None]
    return ImportedConfig(
        to_agent_config(old.model_copy(update={"tools": usable})),
        [f"its tool {old.tools[place].type} is left out: {reason}" for place, reason in reasons.items() if reason],
    )


def find_obstacle(config: OctoberAgentConfig, tool: ToolDefinition) -> str | None:
    """Return why an agent cannot have a tool, or None if it can."""
    try:
        to_agent_config(config.model_copy(update={"tools": [tool]}))
    except (InvalidRequest, NotSupported) as error:
        return error.message
    return None
