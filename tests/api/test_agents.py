from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, create_agent

DEFAULTS: dict[str, Any] = {
    "sampling_params": {"strategy": {"type": "greedy"}, "max_tokens": 0, "repetition_penalty": 1.0, "stop": None},
    "input_shields": [],
    "output_shields": [],
    "toolgroups": [],
    "client_tools": [],
    "tool_choice": None,
    "tool_prompt_format": None,
    "tool_config": {"tool_choice": "auto", "tool_prompt_format": None, "system_message_behavior": "append"},
    "max_infer_iters": 10,
    "model": "scripted/demo",
    "instructions": "Be brief.",
    "name": None,
    "enable_session_persistence": False,
    "response_format": None,
}


def stored_config(http: httpx.Client, **config: Any) -> dict[str, Any]:
    agent: dict[str, Any] = http.get(f"/v1/agents/{create_agent(http, **config)}").json()
    return dict(agent["agent_config"])


def test_an_agent_is_shown_with_every_default_filled_in_and_keys_in_llama_stacks_order(http: httpx.Client) -> None:
    created = http.post("/v1/agents", json={"agent_config": agent_config()})

    shown = http.get(f"/v1/agents/{created.json()['agent_id']}").json()

    assert list(created.json()) == ["agent_id"]
    assert list(shown) == ["agent_id", "agent_config", "created_at"]
    assert list(shown["agent_config"]) == list(DEFAULTS)
    assert shown["agent_config"] == DEFAULTS
    assert shown["created_at"].endswith("Z")
    assert len(shown["created_at"]) == len("2026-11-20T18:01:20.974271Z")


def test_a_null_stands_for_the_default(http: httpx.Client) -> None:
    nulls = dict.fromkeys(DEFAULTS.keys() - {"model", "instructions"})

    assert stored_config(http, **nulls) == DEFAULTS
    assert stored_config(http, sampling_params=dict.fromkeys(("strategy", "repetition_penalty", "stop"))) == DEFAULTS
    assert stored_config(http, tool_config=dict.fromkeys(DEFAULTS["tool_config"])) == DEFAULTS


def test_everything_documented_is_kept(http: httpx.Client) -> None:
    parameter = {"name": "city", "parameter_type": "str", "description": "Where.", "required": False, "default": "Ulm"}
    full: dict[str, Any] = {
        "sampling_params": {
            "strategy": {"type": "top_p", "temperature": 0.7, "top_p": 0.8},
            "max_tokens": 64,
            "repetition_penalty": 1.1,
            "stop": ["STOP"],
        },
        "input_shields": ["guard"],
        "output_shields": ["guard"],
        "toolgroups": ["mcp::peer", "mcp::peer/add", {"name": "builtin::rag", "args": {"vector_db_ids": ["v"]}}],
        "client_tools": [{"name": "w", "description": "d", "parameters": [parameter], "metadata": {"a": [1, None]}}],
        "tool_choice": "required",
        "tool_prompt_format": "json",
        "tool_config": {
            "tool_choice": "required",
            "tool_prompt_format": "json",
            "system_message_behavior": "replace",
        },
        "max_infer_iters": 4,
        "model": "no/such-model",
        "instructions": "",
        "name": "full",
        "enable_session_persistence": True,
        "response_format": {"type": "json_schema", "json_schema": {"type": "object"}},
    }

    assert stored_config(http, **full) == full


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"type": "greedy"}, {"type": "greedy"}),
        ({"type": "top_p", "temperature": 0.5}, {"type": "top_p", "temperature": 0.5, "top_p": 0.95}),
        ({"type": "top_p", "temperature": None}, {"type": "top_p", "temperature": None, "top_p": 0.95}),
        ({"type": "top_k", "top_k": 40}, {"type": "top_k", "top_k": 40}),
    ],
)
def test_sampling_strategies(http: httpx.Client, given: dict[str, Any], shown: dict[str, Any]) -> None:
    config = stored_config(http, sampling_params={"strategy": given})

    assert config["sampling_params"]["strategy"] == shown


def test_a_grammar_is_a_response_format(http: httpx.Client) -> None:
    grammar = {"type": "grammar", "bnf": {"rule": "x"}}

    assert stored_config(http, response_format=grammar)["response_format"] == grammar


def test_deprecated_tool_fields_go_into_a_tool_config_that_is_absent(http: httpx.Client) -> None:
    config = stored_config(http, tool_choice="required", tool_prompt_format="python_list", tool_config=None)

    assert (config["tool_choice"], config["tool_prompt_format"]) == ("required", "python_list")
    assert config["tool_config"] == {
        "tool_choice": "required",
        "tool_prompt_format": "python_list",
        "system_message_behavior": "append",
    }


@pytest.mark.parametrize(
    "config",
    [
        {"tool_choice": "required", "tool_config": {"tool_choice": "none"}},
        {"tool_choice": "required", "tool_config": {}},
        {"tool_prompt_format": "json", "tool_config": {"tool_prompt_format": "python_list"}},
    ],
)
def test_deprecated_tool_fields_that_contradict_tool_config_are_refused(
    http: httpx.Client, config: dict[str, Any]
) -> None:
    response = http.post("/v1/agents", json={"agent_config": agent_config(**config)})

    assert response.status_code == 400
    assert "is deprecated" in response.json()["error"]["message"]
    assert response.json()["error"]["param"] == "agent_config"


def test_tool_choice_may_be_a_tools_name_only_in_tool_config(http: httpx.Client) -> None:
    refused = http.post("/v1/agents", json={"agent_config": agent_config(tool_choice="get_weather")})

    config = stored_config(http, tool_config={"tool_choice": "get_weather"})

    assert config["tool_config"]["tool_choice"] == "get_weather"
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "agent_config.tool_choice"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model": None}, "agent_config.model"),
        ({"instructions": 5}, "agent_config.instructions"),
        ({"max_infer_iters": "many"}, "agent_config.max_infer_iters"),
        ({"enable_session_persistence": "perhaps"}, "agent_config.enable_session_persistence"),
        ({"sampling_params": {"strategy": {"type": "beam"}}}, "agent_config.sampling_params.strategy"),
        (
            {"sampling_params": {"strategy": {"type": "top_p", "temperature": 0}}},
            "agent_config.sampling_params.strategy.temperature",
        ),
        (
            {"sampling_params": {"strategy": {"type": "top_p"}}},
            "agent_config.sampling_params.strategy.temperature",
        ),
        (
            {"sampling_params": {"strategy": {"type": "top_k", "top_k": 0}}},
            "agent_config.sampling_params.strategy.top_k",
        ),
        ({"client_tools": [{"description": "no name"}]}, "agent_config.client_tools[0].name"),
        ({"tool_config": {"tool_prompt_format": "yaml"}}, "agent_config.tool_config.tool_prompt_format"),
        ({"response_format": {"type": "xml"}}, "agent_config.response_format"),
        ({"input_shields": "guard"}, "agent_config.input_shields"),
    ],
)
def test_an_invalid_field_is_refused_by_name(http: httpx.Client, config: dict[str, Any], field: str) -> None:
    response = http.post("/v1/agents", json={"agent_config": agent_config(**config)})

    body = response.json()
    assert response.status_code == 400
    assert body["error"]["param"] == field
    assert field in body["error"]["message"]
    location = body["detail"]["errors"][0]["loc"]
    assert (location[:2], location[-1]) == (["body", "agent_config"], field.rpartition(".")[2])
    assert set(body["detail"]["errors"][0]) == {"loc", "msg", "type"}


def test_numbers_and_booleans_are_read_from_text(http: httpx.Client) -> None:
    config = stored_config(http, max_infer_iters="5", enable_session_persistence="true")

    assert config["max_infer_iters"] == 5
    assert config["enable_session_persistence"] is True


def test_unknown_fields_are_ignored(http: httpx.Client) -> None:
    tool = {"name": "w", "tool_prompt_format": "python_list"}
    body = {"agent_config": agent_config(colour="red", client_tools=[tool]), "more": [1]}

    agent = http.post("/v1/agents", json=body).json()["agent_id"]

    config = http.get(f"/v1/agents/{agent}").json()["agent_config"]
    assert "colour" not in config
    assert config["client_tools"] == [{"name": "w", "description": None, "parameters": None, "metadata": None}]


def test_a_large_configuration_is_read_back_whole(http: httpx.Client) -> None:
    instructions = "Behave. " * 64_000

    assert stored_config(http, instructions=instructions)["instructions"] == instructions
