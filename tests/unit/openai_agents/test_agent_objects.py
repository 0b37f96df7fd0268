"""Agents of OpenAI's Agents API: what was sent is what is shown, without credentials."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from openai.types.beta.agent import Agent as SDKAgent
from openai.types.beta.agent_session import Agent as SDKSessionAgent
from pydantic import ValidationError

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.schema import Schema
from stint.domain.tools import AgentToolGroupWithArgs, ToolDef, ToolParameter
from stint.openai_agents.agents import (
    from_agent,
    from_session_agent,
    to_agent_config,
    to_session_config,
    update_agent_config,
    update_session_config,
)
from stint.openai_agents.schemas.agents import AgentCreateParams, AgentUpdateParams, SessionAgentParams
from stint.openai_agents.schemas.sessions import SessionAgentUpdate
from stint.openai_agents.tool_labels import label_tools

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FUNCTION = {"type": "function", "name": "ask", "description": "Asks.", "parameters": {"type": "object"}}
SERVER = {"type": "mcp", "server_label": "docs", "transport": {"type": "http", "server_url": "https://mcp.example/mcp"}}


def dump(value: Schema) -> Any:
    return json.loads(value.to_json())


def create(**fields: Any) -> AgentConfig:
    return to_agent_config(AgentCreateParams.model_validate({"model": "m", **fields}))


def show(config: AgentConfig) -> Any:
    """Return the object of an agent, which the SDK reads."""
    shown = dump(from_agent("agent_1", config, NOW, NOW))
    known = [tool for tool in shown["tools"] if tool["type"] in ("function", "mcp", "web_search")]
    SDKAgent.model_validate(shown | {"tools": known}, strict=True)
    return shown


def show_session(config: AgentConfig) -> Any:
    shown = dump(from_session_agent("agent_1", config))
    SDKSessionAgent.model_validate(shown, strict=True)
    return shown


def test_a_plain_agent_shows_all_defaults() -> None:
    shown = show(create())

    assert shown == {
        "id": "agent_1",
        "object": "agent",
        "created_at": 1767225600,
        "updated_at": 1767225600,
        "name": None,
        "model": "m",
        "instructions": None,
        "metadata": {},
        "tools": [],
        "multi_agent": {"enabled": False, "max_concurrent_subagents": None},
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "auto",
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "compaction": {"async": False},
        "experimental": {"time_awareness": False},
    }


def test_an_agent_shows_what_was_sent() -> None:
    sent: dict[str, Any] = {
        "name": "Helper",
        "instructions": "Be brief.",
        "metadata": {"team": "a"},
        "reasoning": {"effort": "high", "summary": "auto"},
        "service_tier": "priority",
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}, "verbosity": "low"},
        "tools": [
            FUNCTION | {"defer_loading": False},
            SERVER
            | {"transport": SERVER["transport"] | {"headers": {"X-Tenant": "blue"}}}  # type: ignore[operator]
            | {"allowed_tools": ["look_up"], "required": True, "connection_origin": "service"},
            {
                "type": "web_search",
                "mode": "cached",
                "context_size": "high",
                "allowed_domains": ["example.com"],
                "location": {"city": "Bern", "country": "CH", "region": None, "timezone": None},
            },
            {"type": "file_search", "vector_store_ids": ["vs_1"], "max_num_results": 5},
            {"type": "code_interpreter"},
            {"type": "image_generation"},
            {"type": "toolgroup", "name": "weather", "args": {"unit": "C"}},
        ],
        "input_shields": ["guard"],
        "output_shields": ["guard"],
    }

    shown = show(create(**sent))

    added: dict[str, Any] = {"credential_id": None, "request_metadata": {}}
    sent["tools"][1] = sent["tools"][1] | added
    assert {name: shown[name] for name in sent} == sent


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search"},
        {"type": "file_search", "vector_store_ids": ["vs_1"]},
        {"type": "code_interpreter"},
        {"type": "image_generation"},
        {"type": "toolgroup", "name": "weather"},
    ],
)
@pytest.mark.parametrize("approval", ["always", "never", {"always": {"tool_names": ["a"]}}])
def test_each_tool_of_the_server_may_wait_for_approval(tool: dict[str, Any], approval: Any) -> None:
    config = create(tools=[tool | {"require_approval": approval}])

    [shown] = show(config)["tools"]

    assert shown["type"] == tool["type"]
    assert shown["require_approval"] == approval
    [group] = config.toolgroups
    assert isinstance(group, AgentToolGroupWithArgs)
    assert group.require_approval is not None


@pytest.mark.parametrize(
    ("beside", "expected"),
    [("always", "always"), ("never", {"never": {"tool_names": ["a"]}}), ({"never": {}}, "always")],
)
def test_an_mcp_server_shows_the_approval_beside_its_args(beside: Any, expected: Any) -> None:
    args = {
        "server_label": "s",
        "server_url": "https://s.example",
        "require_approval": {"never": {"tool_names": ["a"]}},
    }
    group = AgentToolGroupWithArgs.model_validate({"name": "builtin::mcp", "args": args, "require_approval": beside})

    [shown] = show(AgentConfig(model="m", instructions="", toolgroups=[group]))["tools"]

    assert shown["require_approval"] == expected


def test_a_session_is_stored_steered_and_compacted() -> None:
    config = create()

    assert (config.enable_session_persistence, config.when_busy) == (True, "merge")
    assert [each.type for each in config.context_management or []] == ["compaction"]
    assert config.sampling_params.to_decoding().temperature is None


def test_an_update_changes_only_the_fields_that_are_given() -> None:
    config = create(name="a", instructions="b", tools=[FUNCTION], metadata={"k": "v"}, reasoning={"effort": "low"})

    renamed = update_agent_config(config, AgentUpdateParams.model_validate({"name": None, "model": "n"}))
    cleared = update_agent_config(
        renamed, AgentUpdateParams.model_validate(dict.fromkeys(("tools", "metadata", "reasoning", "instructions")))
    )

    assert show(renamed) == show(config) | {"name": None, "model": "n"}
    empty: dict[str, Any] = {
        "tools": [],
        "metadata": {},
        "reasoning": {"effort": None, "summary": None},
        "instructions": None,
    }
    assert show(cleared) == show(renamed) | empty


def test_the_fields_of_a_session_replace_those_of_its_agent() -> None:
    saved = create(name="a", instructions="b", tools=[FUNCTION])

    params = SessionAgentParams.model_validate({"instructions": None, "tools": [SERVER], "model": None})
    shown = show_session(to_session_config(saved, params))

    assert (shown["name"], shown["model"], shown["instructions"]) == ("a", "m", None)
    assert [tool["type"] for tool in shown["tools"]] == ["mcp"]


@pytest.mark.parametrize("params", [None, {"instructions": "x"}])
def test_a_session_without_an_agent_needs_a_model(params: Any) -> None:
    given = None if params is None else SessionAgentParams.model_validate(params)

    with pytest.raises(InvalidRequest, match=r"^agent\.model is required when agent_id is omitted$") as refused:
        to_session_config(None, given)

    assert refused.value.param == "agent.model"


def test_an_update_of_a_session_keeps_its_instructions() -> None:
    config = create(instructions="b", reasoning={"effort": "low", "summary": "auto"}, tools=[FUNCTION])

    params = SessionAgentUpdate.model_validate({"model": "n", "reasoning": {"effort": "high"}, "tools": None})
    shown = show_session(update_session_config(config, params))

    assert (shown["model"], shown["instructions"], shown["tools"]) == ("n", "b", [])
    assert shown["reasoning"] == {"effort": "high", "summary": "auto"}


@pytest.mark.parametrize(("given", "effort"), [({}, "low"), ({"effort": None}, None), ({"effort": "high"}, "high")])
def test_an_update_of_a_session_without_an_effort_keeps_it(given: dict[str, Any], effort: str | None) -> None:
    config = create(reasoning={"effort": "low", "summary": "auto"})

    params = SessionAgentUpdate.model_validate({"reasoning": given})

    assert show_session(update_session_config(config, params))["reasoning"] == {"effort": effort, "summary": "auto"}


def test_a_disabled_web_search_is_shown() -> None:
    [tool] = show(create(tools=[{"type": "web_search", "mode": "disabled", "context_size": "low"}]))["tools"]

    assert (tool["mode"], tool["context_size"]) == ("disabled", "low")


def test_credentials_are_never_shown() -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz012345"
    transport = {
        "type": "http",
        "server_url": f"https://user:{secret}@mcp.example/mcp?api_key={secret}",
        "headers": {"X-Api-Key": secret, "X-Other": secret},
        "authorization": secret,
    }
    tools = [SERVER | {"transport": transport}, {"type": "toolgroup", "name": "t", "args": {"api_key": secret, "n": 1}}]
    config = to_session_config(None, SessionAgentParams.model_validate({"model": "m", "tools": tools}))

    assert config.toolgroups[0].args["authorization"] == secret  # type: ignore[union-attr]
    for shown in (show(config), dump(from_session_agent("a", config))):
        assert secret not in json.dumps(shown)
        assert shown["tools"][1]["args"] == {"n": 1}


def test_an_agent_of_llama_stack_is_shown() -> None:
    parameter = ToolParameter(name="city", parameter_type="string", description="The city.")
    config = AgentConfig(
        model="m",
        instructions="Be brief.",
        toolgroups=["builtin::websearch", AgentToolGroupWithArgs(name="builtin::rag", args={"mode": "vector"})],
        client_tools=[ToolDef(name="ask", description=None, parameters=[parameter])],
    )

    function, search, rag = show(config)["tools"]

    assert function["parameters"]["properties"]["city"]["type"] == "string"
    assert search["type"] == "web_search"
    assert rag == {"type": "toolgroup", "name": "builtin::rag", "args": {"mode": "vector"}}


def test_an_invalid_schema_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="not a supported schema") as refused:
        create(text={"format": {"type": "json_schema", "schema": {"type": "objekt"}}})

    assert refused.value.param == "text.format.schema"


@pytest.mark.parametrize(
    ("fields", "place", "says"),
    [
        ({"tools": [FUNCTION | {"async": True}]}, "async", "Remove async"),
        ({"tools": [FUNCTION | {"defer_loading": True}]}, "defer_loading", "Remove defer_loading"),
        ({"tools": [{"type": "tool_search"}]}, "0", "declare the functions"),
        ({"tools": [{"type": "programmatic_tool_calling"}]}, "0", "remove the tool"),
        ({"tools": [{"type": "computer_use"}]}, "0", "no computer"),
        ({"tools": [{"type": "automations"}]}, "0", "create no automations"),
        ({"tools": [SERVER | {"transport": {"type": "stdio"}}]}, "transport", "starts no processes"),
        ({"tools": [SERVER | {"connection_origin": "environment"}]}, "connection_origin", "service"),
        ({"tools": [SERVER | {"credential_id": ""}]}, "credential_id", "at least 1"),
        ({"tools": [SERVER | {"request_metadata": {"a": 1}}]}, "request_metadata", "send headers"),
        (
            {"tools": [SERVER | {"transport": SERVER["transport"] | {"authorization": "x"}}]},  # type: ignore[operator]
            "authorization",
            "session",
        ),
        ({"tools": [SERVER, SERVER]}, "tools", "label 'docs'"),
        ({"multi_agent": {"enabled": True}}, "enabled", "Subagents"),
        ({"experimental": {"time_awareness": True}}, "time_awareness", "reminders"),
        ({"text": {"format": {"type": "json_object"}}}, "format", "json_schema"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        AgentCreateParams.model_validate({"model": "m", **fields})

    problem = refused.value.errors()[0]
    assert str(problem["loc"][-1]) == place
    assert says in problem["msg"]


def test_the_model_of_an_agent_cannot_be_cleared() -> None:
    with pytest.raises(ValidationError, match="needs a model"):
        AgentUpdateParams.model_validate({"model": None})


def test_labels_name_the_server_of_each_tool() -> None:
    labels = label_tools(create(tools=[FUNCTION, SERVER, {"type": "web_search"}]))
    listed = label_tools(create(tools=[SERVER, {"type": "toolgroup", "name": "weather"}]), {"docs": ["look_up"]})

    assert (labels("ask"), labels("brave_search"), labels("look_up")) == (None, "builtin::websearch", "docs")
    assert (listed("look_up"), listed("unknown")) == ("docs", "")
