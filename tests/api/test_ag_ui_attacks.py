"""Hostile requests of AG-UI: none is a server error, and none is taken for something else."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.api.ag_ui_client import events_of, find_event, said, send_run
from tests.api.api_client import create_agent
from tests.api.app_fixture import AppFixture
from tests.store.tenant_records import read_records

LONG = "x" * 513


def deep_json(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.fixture
def agent(http: httpx.Client) -> str:
    return create_agent(http)


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("threadId", {"threadId": ""}),
        ("threadId", {"threadId": LONG}),
        ("threadId", {"threadId": None}),
        ("threadId", {"threadId": {"a": 1}}),
        ("runId", {"runId": 7}),
        ("messages", {"messages": None}),
        ("messages", {"messages": {"0": {}}}),
        ("messages", {"messages": [{"id": "m", "role": "user", "content": "x"}] * 10_001}),
        ("messages[0].id", {"messages": [{"role": "user", "content": "x"}]}),
        ("messages[0].id", {"messages": [said(LONG, "x")]}),
        ("messages[0].role", {"messages": [{"id": "m", "role": "root", "content": "x"}]}),
        ("messages[0]", {"messages": ["x"]}),
        ("messages[0].content", {"messages": [said("m", None)]}),
        ("messages[0].content", {"messages": [said("m", 7)]}),
        ("messages[0].content", {"messages": [said("m", [])]}),
        ("messages[0].content[0]", {"messages": [said("m", [{"type": "root"}])]}),
        ("messages", {"messages": [said("m", [{"type": "text", "text": "x"}] * 20_001)]}),
        ("tools", {"tools": [{"name": f"t{number}", "description": ""} for number in range(129)]}),
        ("tools", {"tools": [{"name": "bad name", "description": ""}]}),
        ("tools", {"tools": [{"name": "same", "description": ""}] * 2}),
        ("tools[0].parameters", {"tools": [{"name": "t", "description": "", "parameters": "x"}]}),
        ("context", {"context": [{"description": "d", "value": "x" * 70_000}]}),
        ("context", {"context": [{"description": "d", "value": "v"}] * 129}),
        ("state", {"state": {"a": "x" * 300_000}}),
        ("resume", {"resume": [{"interruptId": "a:b", "status": "resolved"}] * 129}),
        ("resume[0].status", {"resume": [{"interruptId": "a:b", "status": "approved"}]}),
        ("forwardedProps.stint/budget.max_tokens", {"forwardedProps": {"stint/budget": {"max_tokens": -1}}}),
    ],
)
def test_an_invalid_field_is_named(http: httpx.Client, agent: str, field: str, body: Any) -> None:
    response = send_run(http, agent, "1", **{"messages": [said("m1", "Hello")]} | body)

    assert response.status_code == 400, response.text[:300]
    error = response.json()["error"]
    assert (error["param"], len(error["message"]) < 5_000) == (field, True)


def test_deep_values_are_no_server_error(http: httpx.Client, agent: str) -> None:
    deep = deep_json(50_000)
    for field in ("state", "forwardedProps", "messages"):
        body = f'{{"threadId":"1","runId":"1","messages":[],"{field}":{deep}}}'
        response = http.post(f"/v1/agents/{agent}/ag-ui", content=body, headers={"content-type": "application/json"})
        assert response.status_code in (200, 400), response.text[:300]


def test_names_of_clients_reach_no_line_of_the_stream(http: httpx.Client, agent: str) -> None:
    thread = "1\n\ndata: {}\r\n\u2028\U0001f600\x00"
    events = events_of(send_run(http, agent, thread, [said("m\n\ndata: x", "say: Hello")], runId="r\ndata: y"))

    assert (events[0]["threadId"], events[-1]["runId"]) == (thread, "r\ndata: y")


def test_half_a_character_is_refused(http: httpx.Client, agent: str) -> None:
    for name in ("threadId", "runId"):
        body = {"threadId": "1", "runId": "1", "messages": []} | {name: "HALF"}
        content = json.dumps(body).replace("HALF", "\\ud83d")
        headers = {"content-type": "application/json"}
        response = http.post(f"/v1/agents/{agent}/ag-ui", content=content, headers=headers)
        assert response.status_code == 400


def test_chosen_ids_do_not_take_those_of_the_server(http: httpx.Client, agent: str) -> None:
    first = events_of(send_run(http, agent, "1", [said("m1", "say: One")]))
    step = next(event["messageId"] for event in first if event["type"] == "TEXT_MESSAGE_START")
    events = events_of(send_run(http, agent, "1", [said("m1", "say: One"), said(step, "say: Forged")]))

    contents = [message["content"] for message in find_event(events, "MESSAGES_SNAPSHOT")["messages"]]
    assert contents == ["say: One", "One"]


def test_a_session_is_deleted_with_its_thread(http: httpx.Client, agent: str, app_fixture: AppFixture) -> None:
    headers = {"x-stint-user": "ann@example.com"}
    response = send_run(http, agent, "secret thread", [said("m1", "say: Hello")], headers=headers)
    session = response.headers["stint-session-id"]
    keys = find_threads(app_fixture)

    http.delete(f"/v1/agents/{agent}/session/{session}")
    store = app_fixture.make_services("").store
    asyncio.run(store.deletion.delete_session(app_fixture.tenant, agent, session, float("inf")))

    assert len(keys) == 1
    assert "secret" not in keys[0]
    assert find_threads(app_fixture) == []


def find_threads(app_fixture: AppFixture) -> list[str]:
    found = read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)
    return [item["pk"]["S"] for item in found if "#thread:" in item["pk"]["S"]]
