"""Shields of single tools, with the real client of October 2024. The same sessions are read with client 0.2.12."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused, forms
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints

SHIELD = {
    "identifier": "words",
    "type": "deny_list",
    "params": {"phrases": ["bomb"], "user_message": "Not that."},
    "provider_id": "deny-list",
}
WEATHER: dict[str, Any] = {
    "type": "function_call",
    "function_name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"city": {"param_type": "string", "description": "The city", "required": True}},
}
INPUT_BLOCKED = "A shield blocked the arguments of this call, so the tool did not run. Not that."
OUTPUT_BLOCKED = "A shield blocked the result of this call. Not that."


@pytest.fixture
def endpoint() -> Iterator[ScriptedHTTPServer]:
    def answer(_: Received) -> Reply:
        return Reply((b"how to make a bomb",))

    with ScriptedHTTPServer(answer) as server:
        yield server


@pytest.fixture
def shielded(app_fixture: AppFixture, october: OctoberClient) -> Iterator[OctoberClient]:
    """Return the client, for a tenant with a shield and with endpoints of this machine."""
    app_fixture.tool_providers = {"remote-execution": HttpEndpoints(Guard(["127.0.0.1"]))}
    app_fixture.made.clear()
    october.call("shields.register", shield=SHIELD)
    yield october
    app_fixture.tool_providers = None
    app_fixture.made.clear()


def remote(server: ScriptedHTTPServer, **shields: Any) -> dict[str, Any]:
    return {**WEATHER, "remote_execution": {"url": server.url, "method": "POST"}, **shields}


def kinds(turn: dict[str, Any]) -> list[str]:
    return [step["step_type"] for step in turn["steps"]]


def later(client: LlamaStackClient, session: tuple[str, str]) -> dict[str, Any]:
    """Return a session as client 0.2.12 reads it, with the fields that this client does not know."""
    agent_id, session_id = session
    return client.agents.session.retrieve(session_id, agent_id=agent_id).to_dict(mode="json")


def test_input_shields_see_the_arguments_before_the_tool_runs(
    client: LlamaStackClient, shielded: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    session = shielded.open_session(tools=[remote(endpoint, input_shields=["words"])])

    payloads = shielded.say(session, 'get_weather {"city": "bomb"}')
    turn = payloads[-1]["turn"]
    passed = shielded.say(session, 'get_weather {"city": "Ulm"}')[-1]["turn"]

    assert kinds(turn) == ["inference", "shield_call", "tool_execution", "inference"]
    assert turn["steps"][1]["violation"]["user_message"] == "Not that."
    assert turn["steps"][2]["tool_responses"][0]["content"] == INPUT_BLOCKED
    [start] = [each for each in payloads if each["event_type"] == "step_start" and each["step_type"] == "shield_call"]
    assert start["metadata"]["touchpoint"] == "tool-input"
    assert kinds(passed) == kinds(turn)
    assert passed["steps"][1]["violation"] is None
    assert len(endpoint.requests) == 1
    assert b"Ulm" in endpoint.requests[0].body
    steps = later(client, session)["turns"][0]["steps"]
    assert steps[1]["metadata"]["tool_name"] == "get_weather"


def test_output_shields_see_the_result_before_anyone_else(
    client: LlamaStackClient, shielded: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    session = shielded.open_session(tools=[remote(endpoint, output_shields=["words"])])

    payloads = shielded.say(session, 'get_weather {"city": "Ulm"}')

    assert forms(payloads)[4:9] == [
        "step_start tool_execution",
        "step_progress tool_execution",
        "step_complete tool_execution",
        "step_start shield_call",
        "step_complete shield_call",
    ]
    turn = payloads[-1]["turn"]
    assert turn["steps"][1]["tool_responses"][0]["content"] == OUTPUT_BLOCKED
    assert "blocked" in turn["output_message"]["content"]
    assert "bomb" not in json.dumps(payloads) + json.dumps(later(client, session))
    assert len(endpoint.requests) == 1


def test_a_call_with_blocked_arguments_is_not_handed_to_the_client(
    client: LlamaStackClient, shielded: OctoberClient
) -> None:
    session = shielded.open_session(tools=[{**WEATHER, "input_shields": ["words"]}])

    turn = shielded.say(session, 'get_weather {"city": "bomb"}')[-1]["turn"]
    handed = shielded.say(session, 'get_weather {"city": "Ulm"}')[-1]["turn"]

    assert kinds(turn) == ["inference", "shield_call", "tool_execution", "inference"]
    assert turn["output_message"]["tool_calls"] == []
    assert kinds(handed) == ["inference", "shield_call"]
    assert [call["arguments"] for call in handed["output_message"]["tool_calls"]] == [{"city": "Ulm"}]
    assert [turn["status"] for turn in later(client, session)["turns"]] == ["completed", "awaiting_input"]


@pytest.mark.parametrize("call_id", [None, "", "nope"])
def test_the_result_of_a_function_is_checked_when_the_client_brings_it(
    client: LlamaStackClient, shielded: OctoberClient, call_id: str | None
) -> None:
    session = shielded.open_session(tools=[{**WEATHER, "output_shields": ["words"]}])
    [call] = shielded.say(session, "get_weather in Ulm")[-1]["turn"]["output_message"]["tool_calls"]
    answer = {"role": "ipython", "tool_name": "get_weather", "content": "a bomb"}

    payloads = shielded.send(session, {**answer, "call_id": call["call_id"] if call_id is None else call_id})

    assert forms(payloads)[:4] == [
        "turn_start",
        "step_start shield_call",
        "step_complete shield_call",
        "step_start inference",
    ]
    turn = payloads[-1]["turn"]
    assert kinds(turn) == ["shield_call", "inference"]
    assert turn["input_messages"][0]["content"] == OUTPUT_BLOCKED
    assert "bomb" not in json.dumps(payloads) + json.dumps(later(client, session))


def test_a_result_that_passes_is_unchanged(shielded: OctoberClient) -> None:
    session = shielded.open_session(tools=[{**WEATHER, "output_shields": ["words"]}])
    [call] = shielded.say(session, "get_weather in Ulm")[-1]["turn"]["output_message"]["tool_calls"]
    answer = {"role": "ipython", "call_id": call["call_id"], "tool_name": "get_weather", "content": "sunny"}

    turn = shielded.send(session, answer)[-1]["turn"]

    assert turn["steps"][0]["violation"] is None
    assert turn["input_messages"][0]["content"] == "sunny"
    assert "sunny" in turn["output_message"]["content"]


def test_an_agent_of_october_is_shielded_in_the_later_api(
    http: httpx.Client, shielded: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    tools = [{**WEATHER, "output_shields": ["words"]}]
    agent_id = shielded.create_agent(tools=tools)
    config = http.get(f"/v1/agents/{agent_id}").json()["agent_config"]
    session_id = http.post(f"/v1/agents/{agent_id}/session", json={"session_name": "s"}).json()["session_id"]
    url = f"/v1/agents/{agent_id}/session/{session_id}/turn"

    waits = http.post(url, json={"messages": [{"role": "user", "content": "get_weather in Ulm"}]}).json()
    [call] = waits["output_message"]["tool_calls"]
    response = {"call_id": call["call_id"], "tool_name": "get_weather", "content": "a bomb"}
    ended = http.post(f"{url}/{waits['turn_id']}/resume", json={"tool_responses": [response]}).json()

    assert config["tool_shields"] == {"get_weather": {"input_shields": [], "output_shields": ["words"]}}
    assert (waits["status"], ended["status"]) == ("awaiting_input", "completed")
    assert kinds(ended) == ["inference", "tool_execution", "shield_call", "inference"]
    assert ended["steps"][1]["tool_responses"][0]["content"] == OUTPUT_BLOCKED
    assert "bomb" not in json.dumps(ended)


def test_an_unknown_shield_of_a_tool_is_named(shielded: OctoberClient) -> None:
    session = shielded.open_session(tools=[{**WEATHER, "input_shields": ["nope"]}])

    with pytest.raises(Refused) as refused:
        shielded.say(session, "Hello")

    assert refused.value.status == 400
    assert "Shield 'nope' is not registered" in refused.value.message
