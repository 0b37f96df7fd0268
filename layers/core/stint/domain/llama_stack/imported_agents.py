"""Configurations of agents of other Llama Stack servers, of 0.2.12 and of October 2024."""

from collections.abc import Mapping
from typing import Any

from stint.domain.llama_stack.agents import AgentConfig


def read_agent_config(value: Mapping[str, Any]) -> AgentConfig:
    """Make a configuration of its JSON object. Raises ValueError (pydantic's ValidationError is one)."""
    return AgentConfig.model_validate(value)
