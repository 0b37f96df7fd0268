"""Budgets of sessions and conversations, with the clients of each API and hostile values."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import APIStatusError as LlamaStatusError
from llama_stack_client import LlamaStackClient
from openai import APIStatusError, BadRequestError, OpenAI
from tests.api.agents_api_client import AGENT, BETA, NONE, SESSIONS, message, post_events, result_of
from tests.api.api_client import agent_config, assert_error, create_agent, open_session, turn
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, openai_client

LIMITS = {"max_tokens": 5}
"""Fewer than the input of a turn has, so that none begins, and one that is spent after any answer."""


@pytest.fixture
def openai(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def read_table(app_fixture: AppFixture) -> list[dict[str, Any]]:
    """Return all items of the table, which has those of other tests."""
    pages = app_fixture.dynamodb.get_paginator("scan").paginate(
        TableName=app_fixture.settings.table, ConsistentRead=True
    )
    return [item for page in pages for item in page["Items"]]


def spend(app_fixture: AppFixture, session_id: str) -> None:
    """Let the record of a session say that its budget is spent."""
    tenant = app_fixture.tenant
    own = [
        item for item in read_table(app_fixture) if "budget" in item and session_id in item["pk"]["S"] + item["sk"]["S"]
    ]
    assert [item["pk"]["S"].split("#")[0] for item in own] == [tenant]
    key = {name: own[0][name] for name in ("pk", "sk")}
    app_fixture.dynamodb.update_item(
        TableName=app_fixture.settings.table,
        Key=key,
        UpdateExpression="SET spent = :spent",
        ExpressionAttributeValues={":spent": {"S": "9000000 900000"}},
    )


def assert_spent(error: APIStatusError | LlamaStatusError, named: str) -> None:
    """Check the error of a client: a status that is not retried, with what was spent and what to do."""
    body: Any = error.body
    body = body.get("error", body)
    assert (error.status_code, body["code"], body["type"]) == (402, "insufficient_quota", "insufficient_quota")
    assert f"{named} has spent 900000 of the 5 tokens of its budget. Create a " in body["message"]


def test_llama_stacks_client_sets_a_budget_with_an_extra_body(
    client: LlamaStackClient, app_fixture: AppFixture
) -> None:
    agent_id = client.agents.create(agent_config=agent_config(model=MODEL)).agent_id  # type: ignore[arg-type]  # a dict
    budget = {"max_dollars": 2.5, "max_tokens": 100_000}
    session_id = client.agents.session.create(agent_id, session_name="talk", extra_body={"budget": budget}).session_id
    messages: Any = [{"role": "user", "content": "Hello"}]

    client.agents.turn.create(session_id, agent_id=agent_id, messages=messages, stream=False)

    shown: Any = client.agents.session.retrieve(session_id, agent_id=agent_id).to_dict()["budget"]
    assert (shown["max_dollars"], shown["max_tokens"]) == (2.5, 100_000)
    assert 0 < shown["spent_tokens"] < 100
    assert shown["remaining_tokens"] == 100_000 - shown["spent_tokens"]
    assert shown["remaining_dollars"] + shown["spent_dollars"] == pytest.approx(2.5)


@pytest.mark.parametrize("stream", [False, True])
def test_llama_stacks_client_gets_the_error_of_a_spent_session(
    client: LlamaStackClient, app_fixture: AppFixture, stream: bool
) -> None:
    agent_id = client.agents.create(agent_config=agent_config(model=MODEL)).agent_id  # type: ignore[arg-type]  # a dict
    session_id = client.agents.session.create(agent_id, session_name="talk", extra_body={"budget": LIMITS}).session_id
    spend(app_fixture, session_id)
    messages: Any = [{"role": "user", "content": "Hello"}]

    with pytest.raises(LlamaStatusError) as refused:
        client.agents.turn.create(session_id, agent_id=agent_id, messages=messages, stream=stream)

    assert_spent(refused.value, f"Session {session_id}")


@pytest.mark.parametrize("when_busy", ["reject", "enqueue", "merge", "interrupt"])
def test_a_spent_session_refuses_a_turn_however_it_waits(
    http: httpx.Client, app_fixture: AppFixture, when_busy: str
) -> None:
    agent = create_agent(http, model=MODEL)
    path = f"/v1/agents/{agent}/session"
    session_id = http.post(path, json={"session_name": "talk", "budget": LIMITS}).json()["session_id"]
    spend(app_fixture, session_id)
    body = {"messages": [{"role": "user", "content": "Hello"}], "when_busy": when_busy}

    answer = http.post(f"{path}/{session_id}/turn", json=body)

    assert_error(answer, 402, "insufficient_quota")
    assert http.get(f"{path}/{session_id}").json()["turns"] == []


def test_openais_client_sets_the_budget_of_a_conversation_with_an_extra_body(
    openai: OpenAI, app_fixture: AppFixture
) -> None:
    created: Any = openai.conversations.create(extra_body={"budget": {"max_tokens": 100_000}})
    assert created.budget == {"max_tokens": 100_000, "spent_tokens": 0, "remaining_tokens": 100_000}

    response = openai.responses.create(model=MODEL, input="Hello", conversation=created.id)

    assert response.usage is not None
    shown: Any = openai.conversations.retrieve(created.id)
    assert shown.budget["spent_tokens"] == response.usage.total_tokens
    changed: Any = openai.conversations.update(created.id, metadata={"a": "b"})
    assert changed.budget == shown.budget
    body: Any = {"budget": {"max_tokens": 1_000_000}}
    with pytest.raises(BadRequestError, match="The budget of a conversation cannot be changed"):
        openai.conversations.update(created.id, metadata={"a": "b"}, extra_body=body)


@pytest.mark.parametrize("how", [{}, {"background": True}, {"stream": True}])
def test_openais_client_gets_the_error_of_a_spent_conversation(
    openai: OpenAI, app_fixture: AppFixture, how: dict[str, Any]
) -> None:
    conversation = openai.conversations.create(extra_body={"budget": LIMITS})
    spend(app_fixture, conversation.id)

    with pytest.raises(APIStatusError) as refused:
        openai.responses.create(model=MODEL, input="Hello", conversation=conversation.id, **how)

    assert_spent(refused.value, f"Conversation {conversation.id}")
    assert app_fixture.queue.tasks == []


def test_openais_client_sets_the_budget_of_a_session_of_the_agents_api_with_an_extra_body(
    openai: OpenAI, app_fixture: AppFixture
) -> None:
    created: Any = openai.beta.agents.sessions.create(
        environment=NONE, agent=AGENT, input="Hello", extra_body={"budget": {"max_tokens": 100_000}}
    )
    assert created.budget["max_tokens"] == 100_000

    app_fixture.run_waiting()

    shown: Any = openai.beta.agents.sessions.retrieve(created.id)
    assert shown.budget["spent_tokens"] == shown.usage.total_tokens > 0
    [listed] = [*openai.beta.agents.sessions.list()]
    assert listed.to_dict()["budget"] == shown.budget


def test_a_saved_agents_session_has_the_budget_of_its_creation(openai: OpenAI, app_fixture: AppFixture) -> None:
    saved = openai.beta.agents.create(model=MODEL)
    created: Any = openai.beta.agents.sessions.create(
        environment=NONE, agent_id=saved.id, input="Hello", extra_body={"budget": {"max_dollars": 3}}
    )

    app_fixture.run_waiting()

    shown: Any = openai.beta.agents.sessions.retrieve(created.id)
    assert shown.budget["max_dollars"] == 3
    assert "max_tokens" not in shown.budget


def test_openais_client_gets_the_error_of_a_spent_session_and_may_still_cancel(
    openai: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    tool: Any = {"type": "function", "name": "ask", "description": "", "parameters": {"type": "object"}}
    created = openai.beta.agents.sessions.create(
        environment=NONE,
        agent=AGENT | {"tools": [tool]},
        input="call: ask {}",
        extra_body={"budget": LIMITS | {"max_tokens": 1_000}},
    )
    app_fixture.run_waiting()
    [action] = openai.beta.agents.sessions.retrieve(created.id).required_actions
    spend(app_fixture, created.id)

    for event in (message("more"), result_of(action)):
        refused = post_events(http, created.id, event)
        assert_error(refused, 402, "insufficient_quota")
    assert post_events(http, created.id, {"type": "agent.session.input.cancel"}).status_code == 202

    assert openai.beta.agents.sessions.retrieve(created.id).status == "idle"


def test_a_session_that_its_first_turn_would_exceed_shows_that_the_turn_failed(
    openai: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    created = openai.beta.agents.sessions.create(
        environment=NONE, agent=AGENT, input="Hello, how are you today?", extra_body={"budget": LIMITS}
    )

    app_fixture.run_waiting()

    [failed] = http.get(f"{SESSIONS}/{created.id}/turns", headers=BETA).json()["data"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", "usage_limit_exceeded")


def test_the_update_of_a_session_keeps_its_budget(openai: OpenAI, http: httpx.Client) -> None:
    created = openai.beta.agents.sessions.create(
        environment=NONE, agent=AGENT, input="Hello", extra_body={"budget": LIMITS}
    )

    changed: Any = openai.beta.agents.sessions.update(created.id, metadata={"a": "b"})

    assert changed.budget["max_tokens"] == 5
    body = {"budget": {"max_tokens": 50_000}}
    refused = http.post(f"{SESSIONS}/{created.id}", json=body, headers=BETA)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "budget")


HOSTILE = [
    {},
    [],
    0,
    "5",
    {"max_tokens": 0},
    {"max_tokens": -1},
    {"max_tokens": 1.5},
    {"max_tokens": True},
    {"max_tokens": "100"},
    {"max_tokens": 10**13},
    {"max_tokens": 10**400},
    {"max_dollars": 0},
    {"max_dollars": -0.1},
    {"max_dollars": True},
    {"max_dollars": "1"},
    {"max_dollars": 1e10},
    {"max_dollars": None, "max_tokens": None},
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: json.dumps(value)[:40])
def test_a_budget_that_is_none_is_refused_in_each_api(http: httpx.Client, value: Any) -> None:
    agent = create_agent(http, model=MODEL)
    agents_api = {"environment": NONE, "agent": AGENT, "input": "Hello"}

    answers = [
        http.post(f"/v1/agents/{agent}/session", json={"session_name": "talk", "budget": value}),
        http.post("/v1/conversations", json={"budget": value}),
        http.post(SESSIONS, json=agents_api | {"budget": value}, headers=BETA),
    ]

    assert [answer.status_code for answer in answers] == [400] * 3
    assert all("budget" in answer.json()["error"]["message"] for answer in answers), answers[0].text


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_refused(http: httpx.Client, number: str) -> None:
    body = f'{{"budget": {{"max_dollars": {number}}}}}'

    answer = http.post("/v1/conversations", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 400


def test_the_smallest_amount_is_a_millionth_of_a_dollar(http: httpx.Client) -> None:
    made = [http.post("/v1/conversations", json={"budget": {"max_dollars": each}}).json() for each in (1e-9, 1e9)]

    assert [each["budget"]["max_dollars"] for each in made] == [1e-6, 1e9]


def test_a_session_without_a_budget_shows_none(http: httpx.Client) -> None:
    session = open_session(http, model=MODEL)
    turn(http, session, "Hello")

    assert "budget" not in http.get(session).json()
    assert "budget" not in http.post("/v1/conversations", json={"budget": None}).json()


def test_a_deleted_session_leaves_no_counter(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, model=MODEL)
    path = f"/v1/agents/{agent}/session"
    session_id = http.post(path, json={"session_name": "talk", "budget": {"max_tokens": 1_000}}).json()["session_id"]
    turn(http, f"{path}/{session_id}", "Hello")

    assert http.delete(f"{path}/{session_id}").status_code == 200

    assert [item for item in read_table(app_fixture) if session_id in item["pk"]["S"] and "spent" in item] == []
