"""Overrides of a turn, and its events, compared with the observed behaviour of Llama Stack 0.2.12."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import TIME, WEATHER, assert_error, open_session, resume, say, turn, turns_of
from tests.api.sequences import ADD, calls, last_turn, says, sequence
from tests.servers.chat_completions import ChatCompletionsServer

TOOL = ["start tool_execution", "call in_progress add", "complete tool_execution"]
ASK = ("call_c", "get_weather", '{"city": "Ulm"}')
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def offered(chat: ChatCompletionsServer) -> list[str]:
    """Name the tools that the model was shown last."""
    return [tool["function"]["name"] for tool in chat.bodies[-1].get("tools", [])]


def test_toolgroups_of_a_turn_are_added_for_that_turn_alone(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    """The API's documentation says that they are added; they are gone in the next turn."""
    session = open_session(http, model="openai/m", toolgroups=[f"{mcp}/total"], client_tools=[WEATHER])
    chat.script(calls(ADD), says("5"))

    told = sequence(say(http, session, "2+3?", stream=True, toolgroups=[f"{mcp}/add"]))
    with_them = offered(chat)
    others: list[list[str]] = []
    nothing: list[list[str] | None] = [[], None]
    for none in nothing:
        turn(http, session, "hello", toolgroups=none)
        others.append(offered(chat))

    assert told[:7] == ["turn_start", "start inference", "call succeeded add", "complete inference", *TOOL]
    assert with_them == ["get_weather", "total", "add"]
    assert others == [["get_weather", "total"]] * 2


def test_args_of_toolgroups_and_turns_win_over_models_and_agents(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str
) -> None:
    """As recorded, args of a toolgroup win over the model's, and those of the turn over the agent's."""
    session = open_session(http, model="openai/m", toolgroups=[{"name": mcp, "args": {"b": 100}}])
    chat.script(calls(ADD), says("?"), calls(ADD), says("?"))

    agents = last_turn(say(http, session, "2+3?", stream=True))
    turns = last_turn(say(http, session, "2+3?", stream=True, toolgroups=[{"name": mcp, "args": {"b": 7}}]))

    sums = [each["steps"][1]["tool_responses"][0]["content"][0]["text"] for each in (agents, turns)]
    assert sums == ["102", "9"]
    assert agents["steps"][1]["tool_calls"][0]["arguments"] == {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("none", (None, None)),
        ("required", (1, "required")),
        ("get_weather", (1, {"type": "function", "function": {"name": "get_weather"}})),
        ("auto", (1, None)),
    ],
)
def test_the_tool_choice_of_turn_or_agent_reaches_the_model(
    http: httpx.Client, chat: ChatCompletionsServer, choice: str, sent: tuple[int | None, Any]
) -> None:
    """The original documents it, and ignores it."""
    config: dict[str, Any] = {"model": "openai/m", "client_tools": [WEATHER]}
    agents = open_session(http, **config, tool_config={"tool_choice": choice})
    turns = open_session(http, **config, tool_config={"tool_choice": "none"})
    chat.script(says("ok"), says("ok"))

    told = [sequence(say(http, agents, "hi", stream=True))]
    told.append(sequence(say(http, turns, "hi", stream=True, tool_config={"tool_choice": choice})))

    assert told == [["turn_start", "start inference", "text ok", "complete inference", "turn_complete end_of_turn"]] * 2
    shown = [(len(body["tools"]) if "tools" in body else None, body.get("tool_choice")) for body in chat.bodies]
    assert shown == [sent, sent]


def test_a_choice_of_an_unknown_tool_is_a_status(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    """A stream that has begun has no status."""
    session = open_session(http, model="openai/m", client_tools=[WEATHER], tool_config={"tool_choice": "nosuch"})

    refused = say(http, session, "hi", stream=True)

    error = assert_error(refused, 400, "tool_not_found")
    assert error["param"] == "tool_config.tool_choice"
    assert "'get_weather'" in error["message"]


def test_fields_that_were_ignored_in_silence_hold_for_one_turn(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    session = open_session(http, model="openai/m", client_tools=[WEATHER])
    changed: dict[str, Any] = {
        "instructions": "Rhyme.",
        "sampling_params": {"strategy": {"type": "top_p", "temperature": 0.5, "top_p": 0.6}, "max_tokens": 9},
        "client_tools": [TIME],
        "response_format": {"type": "json_schema", "json_schema": SCHEMA},
    }
    chat.script(says('{"a": "b"}'), says("fine"))

    turn(http, session, "hi", **changed)
    turn(http, session, "hi")

    first, second = chat.bodies
    assert first["messages"][0] == {"role": "system", "content": "Rhyme."}
    assert (first["temperature"], first["top_p"], first["max_tokens"]) == (0.5, 0.6, 9)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["get_time"]
    assert first["response_format"]["json_schema"]["schema"]["required"] == ["a"]
    assert second["messages"][0] == {"role": "system", "content": "Be brief."}
    assert second["temperature"] == 0.0
    assert [tool["function"]["name"] for tool in second["tools"]] == ["get_weather"]
    assert "response_format" not in second


def test_client_tools_of_a_turn_are_awaited_and_hold_after_the_pause(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    session = open_session(http, model="openai/m", client_tools=[TIME])
    chat.script(calls(ASK), says("fine"))

    told = say(http, session, "weather?", stream=True, client_tools=[WEATHER])
    resumed = resume(http, session, last_turn(told), "sunny", stream=True)

    assert sequence(told)[-1] == "turn_awaiting_input end_of_message"
    assert sequence(resumed)[-1] == "turn_complete end_of_turn"
    assert [[tool["function"]["name"] for tool in body["tools"]] for body in chat.bodies] == [["get_weather"]] * 2


def test_shields_of_a_turn_take_the_place_of_the_agents_and_none_are_none(
    http: httpx.Client, chat: ChatCompletionsServer
) -> None:
    for name in ("one", "two"):
        http.post("/v1/shields", json={"shield_id": name, "params": {"phrases": [f"say {name}"]}})
    session = open_session(http, model="openai/m", input_shields=["one"], output_shields=["one"])

    blocked = sequence(say(http, session, "say two", stream=True, input_shields=["two"], output_shields=[]))
    passed = sequence(say(http, session, "say one", stream=True, input_shields=[], output_shields=[]))
    agents = sequence(say(http, session, "say one", stream=True))

    refused = ["start shield_call user-input", "complete shield_call blocks", "turn_complete end_of_turn"]
    assert blocked == agents == ["turn_start", *refused]
    assert [word for word in passed if "shield" in word] == []


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"toolgroups": ["nope::x"]}, "toolgroup_not_found"),
        ({"toolgroups": ["mcp::peer/nosuch"]}, "tool_not_found"),
        ({"toolgroups": ["mcp::peer"], "client_tools": [WEATHER | {"name": "add"}]}, "duplicate_tool"),
        ({"client_tools": [WEATHER, WEATHER]}, "duplicate_tool"),
    ],
)
def test_tools_that_cannot_be_are_named_with_a_status_as_a_stream_that_has_begun_has_none(
    http: httpx.Client, chat: ChatCompletionsServer, mcp: str, config: dict[str, Any], code: str
) -> None:
    agents, turns = open_session(http, model="openai/m", **config), open_session(http, model="openai/m")

    assert_error(say(http, agents, "x", stream=True), 400, code)
    assert_error(say(http, turns, "x", stream=True, **config), 400, code)
    assert turns_of(http, agents) == turns_of(http, turns) == []
