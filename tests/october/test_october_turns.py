"""Agents, sessions, turns and steps, with the real client of October 2024, which validates what it gets."""

import json
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.october.client import CONFIG, OctoberClient, Refused, forms

from stint.october_2024.agents import to_agent_config
from stint.october_2024.schemas.agents import OctoberAgentConfig

TEXT = {"content": "Llamas live in Peru.", "mime_type": "text/plain"}
WEATHER = {
    "type": "function_call",
    "function_name": "get_weather",
    "description": "The weather of a city",
    "parameters": {
        "city": {"param_type": "str", "description": "The city", "required": True},
        "unit": {"param_type": "string", "required": False, "default": "C"},
    },
    "input_shields": [],
    "output_shields": [],
}
UNKNOWN = "01a20230-9738-7000-a532-b1957dde7880"


def test_a_turn_streams_the_events_of_october_2024(october: OctoberClient) -> None:
    session = october.open_session()

    payloads = october.say(session, "Hello there")

    assert forms(payloads) == [
        "turn_start",
        "step_start inference",
        "step_progress inference",
        "step_complete inference",
        "turn_complete",
    ]
    turn = payloads[-1]["turn"]
    assert turn["turn_id"] == payloads[0]["turn_id"] == f"{session[1]}:{turn['turn_id'].rpartition(':')[2]}"
    deltas = [each["model_response_text_delta"] for each in payloads if each["event_type"] == "step_progress"]
    assert "".join(deltas) == turn["output_message"]["content"] == turn["steps"][0]["model_response"]["content"]
    assert turn["input_messages"] == [{"role": "user", "content": "Hello there", "context": None}]
    assert (turn["session_id"], turn["output_message"]["stop_reason"]) == (session[1], "end_of_turn")


def test_the_stream_has_only_data_lines(http: httpx.Client, october: OctoberClient) -> None:
    agent_id, session_id = october.open_session()
    body = {"agent_id": agent_id, "session_id": session_id, "messages": [{"role": "user", "content": "Hi"}]}

    response = http.post("/agents/turn/create", json=body | {"stream": True})

    lines = [line for line in response.text.split("\n") if line]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert lines
    assert all(line.startswith('data: {"event":{"payload":') for line in lines)


@pytest.mark.parametrize("stream", [{}, {"stream": False}])
def test_without_a_stream_the_response_is_its_last_event(october: OctoberClient, stream: dict[str, Any]) -> None:
    agent_id, session_id = october.open_session()
    messages = [{"role": "user", "content": "Hi"}]

    found = october.call(
        "agents.turn.create", strict=True, agent_id=agent_id, session_id=session_id, messages=messages, **stream
    )

    assert found["event"]["payload"]["event_type"] == "turn_complete"
    assert found["event"]["payload"]["turn"]["output_message"]["content"]


def test_a_turn_its_steps_and_its_session_can_be_read(october: OctoberClient) -> None:
    session = agent_id, session_id = october.open_session()
    first = october.say(session, "One")[-1]["turn"]
    second = october.say(session, "Two")[-1]["turn"]

    turn = october.call("agents.turn.retrieve", strict=True, agent_id=agent_id, turn_id=second["turn_id"])
    step_id = second["steps"][0]["step_id"]
    step = october.call(
        "agents.steps.retrieve", strict=True, agent_id=agent_id, turn_id=second["turn_id"], step_id=step_id
    )
    whole = october.call("agents.session.retrieve", strict=True, agent_id=agent_id, session_id=session_id)
    one = october.call(
        "agents.session.retrieve",
        strict=True,
        agent_id=agent_id,
        session_id=session_id,
        turn_ids=[second["turn_id"]],
    )

    assert turn == second
    assert step["step"] == second["steps"][0]
    assert whole["turns"] == [first, second]
    assert (whole["session_id"], whole["session_name"]) == (session_id, "s")
    assert one["turns"] == [second]


def test_ids_may_be_in_the_query_or_in_the_body(http: httpx.Client, october: OctoberClient) -> None:
    session = agent_id, session_id = october.open_session()
    turn = october.say(session, "One")[-1]["turn"]
    step = turn["steps"][0]
    ids = {"agent_id": agent_id, "turn_id": turn["turn_id"]}

    for path, names in (
        ("/agents/session/get", {"agent_id": agent_id, "session_id": session_id}),
        ("/agents/turn/get", ids),
        ("/agents/step/get", ids | {"step_id": step["step_id"]}),
    ):
        by_query = http.get(path, params=names)
        by_body = http.post(path, json=names)
        by_both = http.post(path, params=names, json={})
        assert by_query.status_code == 200
        assert by_query.json() == by_body.json() == by_both.json()


def test_a_function_call_completes_the_turn_and_the_next_one_brings_its_result(october: OctoberClient) -> None:
    session = october.open_session(tools=[WEATHER])

    payloads = october.say(session, "get_weather in Ulm")
    turn = payloads[-1]["turn"]
    [call] = turn["output_message"]["tool_calls"]
    answer = {"role": "ipython", "call_id": call["call_id"], "tool_name": "get_weather", "content": "sunny"}
    after = october.send(session, answer)[-1]["turn"]
    read = october.call("agents.session.retrieve", strict=True, agent_id=session[0], session_id=session[1])

    assert payloads[-1]["event_type"] == "turn_complete"
    assert (call["tool_name"], call["arguments"]["city"]) == ("get_weather", "Ulm")
    assert turn["output_message"]["stop_reason"] == "end_of_turn"
    assert "sunny" in after["output_message"]["content"]
    assert after["input_messages"] == [answer]
    assert [each["output_message"] for each in read["turns"]] == [turn["output_message"], after["output_message"]]


def test_the_text_beside_a_tool_call_is_empty_because_clients_print_it(october: OctoberClient) -> None:
    payloads = october.say(october.open_session(tools=[WEATHER]), "get_weather in Ulm")

    progress = [each for each in payloads if each["event_type"] == "step_progress" and each["tool_call_delta"]]
    assert {each["model_response_text_delta"] for each in progress} == {""}
    assert progress[-1]["tool_call_delta"]["parse_status"] == "success"
    assert progress[-1]["tool_call_delta"]["content"]["tool_name"] == "get_weather"


def test_a_result_with_an_empty_call_id_answers_the_open_call(october: OctoberClient) -> None:
    session = october.open_session(tools=[WEATHER])
    october.say(session, "get_weather in Ulm")

    answer = {"role": "ipython", "call_id": "", "tool_name": "get_weather", "content": ["sun", "ny"]}
    turn = october.send(session, answer)[-1]["turn"]

    assert "sun" in turn["output_message"]["content"]
    assert turn["input_messages"] == [answer]


def test_what_one_api_made_the_other_reads_and_continues(http: httpx.Client, october: OctoberClient) -> None:
    session = agent_id, session_id = october.open_session(tools=[WEATHER])
    first = october.say(session, "One")[-1]["turn"]

    path = f"/v1/agents/{agent_id}/session/{session_id}"
    later = http.post(f"{path}/turn", json={"messages": [{"role": "user", "content": "Two"}]}).json()
    config = http.get(f"/v1/agents/{agent_id}").json()["agent_config"]
    read = http.get(path).json()["turns"]
    seen = october.call("agents.session.retrieve", strict=True, agent_id=agent_id, session_id=session_id)["turns"]

    assert [each["turn_id"] for each in read] == [first["turn_id"].rpartition(":")[2], later["turn_id"]]
    assert seen[1]["turn_id"] == f"{session_id}:{later['turn_id']}"
    assert seen[1]["output_message"]["content"] == later["output_message"]["content"]
    assert config["client_tools"][0]["name"] == "get_weather"
    assert config["client_tools"][0]["parameters"][1]["default"] == "C"


def test_an_agent_of_the_later_api_is_used_with_this_one(http: httpx.Client, october: OctoberClient) -> None:
    config = {"model": "scripted/demo", "instructions": "", "client_tools": []}
    agent_id = http.post("/v1/agents", json={"agent_config": config}).json()["agent_id"]
    session = october.call("agents.session.create", agent_id=agent_id, session_name="n")["session_id"]

    turn = october.say((agent_id, session), "Hello")[-1]["turn"]

    assert turn["output_message"]["content"]


def test_context_follows_the_content_after_a_blank_line(october: OctoberClient) -> None:
    message = {"role": "user", "content": "Question", "context": "Facts"}

    turn = october.send(october.open_session(), message)[-1]["turn"]

    assert turn["input_messages"] == [{"role": "user", "content": "Question\n\nFacts", "context": None}]
    assert "Facts" in turn["output_message"]["content"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("unknown", ["agent_id", "session_id"])
def test_an_unknown_agent_or_session_is_a_status_and_not_an_event(
    october: OctoberClient, unknown: str, stream: bool
) -> None:
    agent_id, session_id = october.open_session()
    ids: dict[str, Any] = {"agent_id": agent_id, "session_id": session_id, unknown: UNKNOWN}

    with pytest.raises(Refused) as refused:
        october.call("agents.turn.create", messages=[{"role": "user", "content": "x"}], stream=stream, **ids)

    assert refused.value.status == 404
    assert UNKNOWN in refused.value.message


def test_an_unknown_model_is_a_status_before_the_first_event(october: OctoberClient) -> None:
    agent_id, session_id = october.open_session(model="nowhere/nothing")

    with pytest.raises(Refused) as refused:
        october.call(
            "agents.turn.create",
            agent_id=agent_id,
            session_id=session_id,
            messages=[{"role": "user", "content": "x"}],
            stream=True,
        )

    assert refused.value.status == 400


def test_a_failure_in_the_stream_is_an_event_with_the_message(http: httpx.Client, october: OctoberClient) -> None:
    agent_id, session_id = october.open_session()
    body = {"agent_id": agent_id, "session_id": session_id, "stream": True}

    response = http.post(
        "/agents/turn/create", json=body | {"messages": [{"role": "user", "content": "fail: after 2 words"}]}
    )

    *_, last = [line for line in response.text.split("\n") if line]
    assert response.status_code == 200
    error = json.loads(last.removeprefix("data: "))["error"]
    assert (error["type"], error["turn_id"].partition(":")[0]) == ("model_error", session_id)


def test_deletions_are_final(october: OctoberClient) -> None:
    agent_id, session_id = october.open_session()

    october.call("agents.session.delete", agent_id=agent_id, session_id=session_id)
    with pytest.raises(Refused) as session:
        october.call("agents.session.retrieve", agent_id=agent_id, session_id=session_id)
    october.call("agents.delete", agent_id=agent_id)
    with pytest.raises(Refused) as agent:
        october.call("agents.session.create", agent_id=agent_id, session_name="x")

    assert (session.value.status, agent.value.status) == (404, 404)


@pytest.mark.parametrize("turn_id", ["nope", UNKNOWN, f"{UNKNOWN}:{UNKNOWN}", ":", "a:b:c"])
def test_an_unknown_turn_is_404(october: OctoberClient, turn_id: str) -> None:
    agent_id = october.create_agent()

    with pytest.raises(Refused) as refused:
        october.call("agents.turn.retrieve", agent_id=agent_id, turn_id=turn_id)

    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("tool", "status", "says"),
    [
        ({"type": "brave_search", "engine": "bing", "api_key": "k"}, 400, "Microsoft retired the Bing Search API"),
        ({"type": "brave_search", "engine": "brave"}, 400, "api_key"),
        ({"type": "nope"}, 400, "brave_search"),
    ],
)
def test_a_tool_that_cannot_be_used_is_refused_at_creation(
    october: OctoberClient, tool: dict[str, Any], status: int, says: str
) -> None:
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[tool])

    assert refused.value.status == status
    assert says in refused.value.message
    assert refused.value.headers["x-should-retry"] == "false"


def test_code_is_run_by_the_tool_of_the_later_api_and_refused_without_a_sandbox(october: OctoberClient) -> None:
    tool = {"type": "code_interpreter", "enable_inline_code_execution": True}
    config = OctoberAgentConfig.model_validate({**CONFIG, "tools": [tool]})

    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[tool])

    assert to_agent_config(config).toolgroups == ["builtin::code_interpreter"]
    assert refused.value.status in (400, 501)
    assert "code_interpreter" in refused.value.message


def test_the_keys_of_tools_are_masked_in_every_api(http: httpx.Client, october: OctoberClient) -> None:
    tools = [
        {"type": "brave_search", "engine": "brave", "api_key": "brave-secret-1"},
        {"type": "wolfram_alpha", "api_key": "wolfram-secret-2"},
    ]
    agent_id = october.create_agent(tools=tools)

    shown = http.get(f"/v1/agents/{agent_id}").text

    assert "builtin::websearch" in shown
    assert "secret" not in shown


def test_a_setting_turns_the_api_off(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = http.get("/routes/list")
    monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update={"october_api": False}))

    off, later = http.get("/routes/list"), http.get("/v1/health")

    assert [on.status_code, off.status_code, later.status_code] == [200, 404, 200]
    assert off.json()["error"]["code"] == "route_not_found"


@pytest.mark.parametrize("shape", [{}, {"tools": [WEATHER]}, {"enable_session_persistence": False}])
def test_a_turn_costs_four_write_units_and_those_that_read_it_none(
    october: OctoberClient, app_fixture: AppFixture, server: Served, shape: dict[str, Any]
) -> None:
    def count(name: str) -> float:
        server.settle()
        return float(app_fixture.proxy.units[name])

    session = agent_id, session_id = october.open_session(**shape)
    october.say(session, "One")
    server.settle()
    app_fixture.proxy.forget()
    turn = october.say(session, "Two")[-1]["turn"]
    october.call("agents.turn.retrieve", agent_id=agent_id, turn_id=turn["turn_id"])
    october.call("agents.session.retrieve", agent_id=agent_id, session_id=session_id)

    written = [count(name) for name in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem", "TransactWriteItems")]
    assert sum(written) == 4


@pytest.mark.parametrize("tools", [[], [{"type": "memory"}]])
def test_an_attachment_that_cannot_be_read_is_named(october: OctoberClient, tools: list[dict[str, Any]]) -> None:
    session = october.open_session(tools=tools)
    attachments = [TEXT, {"content": {"uri": "file:///etc/passwd"}, "mime_type": "text/plain"}]

    with pytest.raises(Refused) as refused:
        october.say(session, "x", attachments=attachments)

    error = refused.value.body["error"]
    assert (refused.value.status, error["param"]) == (400, "attachments[1]")
    assert error["message"].startswith("attachments[1]: a URL must be")
