"""The extensions of agents' configurations: what is accepted, and that absent fields are omitted."""

from typing import Any

import pytest
from pydantic import ValidationError

from stint.domain.llama_stack.agents import AgentConfig, NewAgentConfig

PLAIN = {"model": "m", "instructions": ""}
OPTIONS: dict[str, Any] = {
    "reasoning": {"effort": "low", "summary": None},
    "verbosity": "low",
    "service_tier": "fast",
    "metadata": {"team": "a" * 512},
}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def test_absent_options_are_omitted() -> None:
    config = AgentConfig(model="m", instructions="", client_tools=[{"name": "t"}])

    written = config.model_dump(mode="json")

    assert OPTIONS.keys().isdisjoint(written)
    assert "input_schema" not in written["client_tools"][0]


def test_options_are_read_back_as_they_are_written() -> None:
    config = NewAgentConfig.model_validate(PLAIN | OPTIONS | {"client_tools": [{"name": "t", "input_schema": SCHEMA}]})

    written = config.model_dump(mode="json")

    assert {name: written[name] for name in OPTIONS} == OPTIONS
    assert written["client_tools"][0]["input_schema"] == SCHEMA
    assert AgentConfig.model_validate_json(config.model_dump_json()).model_dump() == config.model_dump()


@pytest.mark.parametrize(
    "field",
    [
        {"reasoning": {"effort": "huge"}},
        {"verbosity": "loud"},
        {"service_tier": "gold"},
        {"metadata": {f"k{place}": "" for place in range(17)}},
        {"metadata": {"k" * 65: ""}},
        {"metadata": {"k": "v" * 513}},
        {"metadata": {"k": 1}},
        {"client_tools": [{"name": "t", "input_schema": []}]},
        {"client_tools": [{"name": "t", "input_schema": SCHEMA, "parameters": []}]},
    ],
)
def test_other_values_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NewAgentConfig.model_validate(PLAIN | field)
