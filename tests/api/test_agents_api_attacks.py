"""Hostile requests to OpenAI's Agents API: positions, ids, long and deep values, and texts that break streams."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from openai import OpenAI
from tests.api.agents_api_client import (
    AGENT,
    BETA,
    NONE,
    SESSIONS,
    WEATHER,
    Body,
    OpenStream,
    message,
    post_events,
    result_of,
    start_session,
    stream_session,
)
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.api.test_agents_api_sessions import pause_session

INJECTION = 'a\r\nid: 1\n\nevent: agent.session.failed\rdata: {"type":"error"}\n\n\u2028id: 2\u2029\x85data: x\x0b\x0c'
LINES = (b"id: ", b"event: ", b"data: ", b": keep-alive", b"")


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def nest(depth: int) -> Body:
    text = '{"properties": {"a": ' * depth + "{}" + "}}" * depth
    schema: Body = json.loads(text)
    return schema


def test_no_text_breaks_the_frames_of_a_stream(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = AGENT | {"instructions": INJECTION, "tools": [WEATHER | {"description": INJECTION}]}
    body = {"environment": NONE, "agent": agent, "input": f"say: {INJECTION}", "metadata": {"a": INJECTION}}
    answer = http.post(SESSIONS, json=body | {"stream": True}, headers=BETA)

    assert answer.status_code == 200, answer.text
    for line in answer.text.splitlines():  # also at the line breaks of Unicode
        assert line.encode().startswith(LINES[:-1]) or not line, line
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    assert [event["type"] for event in events][-1] == "agent.session.idle"
    assert events[0]["session"]["metadata"] == {"a": INJECTION}


@pytest.mark.parametrize(
    "end", [":0:0:0", ":-1:0", ":٣:0", ":9999999:0", ":0:99999", ":0", "\u2028:0:0", ":0:0\n", ":1e3:0"]
)
def test_a_malformed_position_is_refused(http: httpx.Client, client: OpenAI, end: str) -> None:
    session = stream_session(client)[0].session
    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    try:
        answer = http.get(
            f"{SESSIONS}/{session.id}/events",
            headers=BETA | {"Last-Event-ID": (turn.id + end).encode()},  # type: ignore[arg-type]
        )
    except httpx.LocalProtocolError:  # no client can send it
        return
    assert answer.status_code == 400, answer.text


def test_a_position_past_a_turn_hides_no_later_one(http: httpx.Client, client: OpenAI, server: Served) -> None:
    session = stream_session(client)[0].session
    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    with OpenStream(server, session.id, f"{turn.id}:999999:9999") as stream:
        post_events(http, session.id, message("Go on"))
        stream.wait_for("idle")
    assert stream.types[0] == "in_progress"
    assert turn.id not in {event.get("turn_id") for event in stream.events}


@pytest.mark.parametrize("path", ["/turns", "/items", ""])
def test_lists_continue_only_after_their_own_ids(http: httpx.Client, client: OpenAI, path: str) -> None:
    own, other = (stream_session(client)[0].session for _ in range(2))
    foreign = [
        *[turn.id for turn in client.beta.agents.sessions.turns.list(other.id)],
        *[item.id for item in client.beta.agents.sessions.items.list(other.id)],
    ]
    url = f"{SESSIONS}/{own.id}{path}" if path else SESSIONS
    texts = [own.id, *foreign, "x", "\x00", "a\nb", "../..", "é\u2028", "f" * 5_000, "msg_" + "0" * 40]
    for after in texts:
        answer = http.get(url, params={"after": after}, headers=BETA)
        assert answer.status_code in (200, 400, 404), (after, answer.text)
        if answer.status_code == 200:
            found = {each["id"] for each in answer.json()["data"]}
            assert not found & set(foreign), after
    for limit in ("0", "101", "-1", "x", "1e2", "٣", "99999999999999999999"):
        answer = http.get(url, params={"limit": limit}, headers=BETA)
        assert answer.status_code == 400, (limit, answer.text)


@pytest.mark.parametrize("name", ["\x00", "a%0d%0aid:%201", "..%2f..", "%E2%80%A8", "%ff", "f" * 3_000, "a#b", "a:b"])
def test_a_session_with_a_hostile_id_is_unknown(http: httpx.Client, name: str) -> None:
    quoted = name.replace("\x00", "%00").replace("#", "%23")
    for path in ("", "/events", "/items", "/turns", f"/turns/{quoted}"):
        answer = http.get(f"{SESSIONS}/{quoted}{path}", headers=BETA)
        assert answer.status_code in (400, 404), (path, answer.text)
    answer = post_events(http, quoted, message("Hello"))
    assert answer.status_code in (400, 404), answer.text


def test_a_result_names_no_other_object(http: httpx.Client, client: OpenAI, app_fixture: AppFixture) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions
    valid = result_of(action)
    for field in ("turn_id", "call_id"):
        for name in ("x", "\x00", "a\nb", "f" * 200, "..", "a:b", "a#b", session.id, "é\u2028"):
            answer = post_events(http, session.id, valid | {field: name})
            assert answer.status_code in (400, 404), (field, name, answer.text)
    assert client.beta.agents.sessions.retrieve(session.id).required_actions == [action]


def test_two_results_of_one_call_are_refused_together(
    http: httpx.Client, client: OpenAI, app_fixture: AppFixture
) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions

    answer = post_events(http, session.id, result_of(action, "sunny"), result_of(action, "rainy"))

    assert answer.status_code == 400
    assert client.beta.agents.sessions.retrieve(session.id).required_actions == [action]


def test_long_and_deep_values_are_refused(http: httpx.Client, app_fixture: AppFixture) -> None:
    schema = {"type": "json_schema", "schema": nest(400)}
    agents: list[Body] = [
        {"tools": [WEATHER | {"parameters": nest(400)}]},
        {"text": {"format": schema}},
        {"tools": [WEATHER | {"name": f"f{place}", "description": "d" * 40_000} for place in range(100)]},
        {"tools": [WEATHER | {"name": f"f{place}"} for place in range(5_000)]},
        {"instructions": "i" * 20_000_000},
    ]
    bodies: list[Body] = [{"agent": AGENT | each} for each in agents]
    bodies += [
        {"metadata": {str(place): "x" for place in range(17)}},
        {"metadata": {"k" * 65: "x"}},
        {"metadata": {"k": "x" * 513}},
        {"metadata": {"k": {"deep": "x"}}},
        {"input": [message("x")["input"][0]] * 10_001},
    ]
    for body in bodies:
        answer = http.post(SESSIONS, json={"environment": NONE, "agent": AGENT, "input": "Hi"} | body, headers=BETA)
        assert answer.status_code in (400, 413), (str(body)[:200], answer.text[:300])
    deep = '{"environment": {"type": "none"}, "agent": ' + '{"a": ' * 50_000 + "1" + "}" * 50_000 + "}"
    headers = BETA | {"content-type": "application/json"}
    assert http.post(SESSIONS, content=deep, headers=headers).status_code == 400
    assert http.get(SESSIONS, headers=BETA).json()["data"] == []


def test_one_request_has_at_most_twenty_events(http: httpx.Client, client: OpenAI, app_fixture: AppFixture) -> None:
    session = start_session(client)

    answer = post_events(http, session.id, *[message("x")] * 21)
    long = post_events(http, session.id, *[message("x" * 1_000_000)] * 20)

    assert answer.status_code == 400
    assert long.status_code in (202, 400, 413), long.text
    app_fixture.run_waiting()
    app_fixture.run_waiting()
    assert client.beta.agents.sessions.retrieve(session.id).status == "idle"


def test_all_streams_of_a_deleted_session_end(http: httpx.Client, client: OpenAI, server: Served) -> None:
    session = stream_session(client)[0].session
    with ExitStack() as stack:
        streams = [stack.enter_context(OpenStream(server, session.id)) for _ in range(5)]
        client.beta.agents.sessions.delete(session.id)
        for stream in streams:
            stream.thread.join(60)
            assert not stream.thread.is_alive()
            assert stream.events == []


def test_names_in_calls_reach_no_log_line(
    http: httpx.Client, client: OpenAI, app_fixture: AppFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    session: Any = pause_session(client, app_fixture)
    forged = 'x\n{"level":"ERROR","message":"forged"}'
    for event in (message(forged), result_of(session.required_actions[0]) | {"call_id": forged, "turn_id": forged}):
        post_events(http, session.id, event, **{"Idempotency-Key": "k1"})
    http.get(f"{SESSIONS}/{session.id}/events", headers=BETA | {"Last-Event-ID": "forged"})
    http.get(SESSIONS, params={"after": forged, "agent_id": forged}, headers=BETA)

    lines = capfd.readouterr().out.splitlines()
    assert not any(line.startswith('{"level":"ERROR","message":"forged"') for line in lines)
