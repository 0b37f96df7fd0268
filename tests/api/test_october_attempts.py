"""Repeated requests of the API of October 2024, with an idempotency key or as its client retries them."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, open_session, turns_of, user
from tests.api.app_fixture import LEASE, AppFixture
from tests.clock import CLOCK

from stint.domain.ids import new_id

CONFIG = {"model": "scripted/demo", "instructions": "Be brief.", "enable_session_persistence": True}


def turn_body(session: str, text: str, **body: Any) -> dict[str, Any]:
    """Return the body of a turn in a session, which is named by its path."""
    *_, agent_id, _, session_id = session.split("/")
    return {"agent_id": agent_id, "session_id": session_id, "messages": [user(text)]} | body


@pytest.fixture(params=["key", "retry"])
def headers(request: pytest.FixtureRequest) -> list[dict[str, str]]:
    """Return the headers of a first request, and of its repetition."""
    if request.param == "key":
        return [{"idempotency-key": new_id()}] * 2
    return [{"x-stainless-retry-count": str(count)} for count in range(2)]


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_whose_answer_was_lost_runs_once(
    http: httpx.Client, app_fixture: AppFixture, headers: list[dict[str, str]], stream: bool
) -> None:
    session = open_session(http, model="recorded/x")
    body = turn_body(session, "say: once", stream=stream)

    first = http.post("/agents/turn/create", json=body, headers=headers[0])
    CLOCK.move(LEASE + 1)
    again = http.post("/agents/turn/create", json=body, headers=headers[1])

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.text == first.text
    assert len(turns_of(http, session)) == len(app_fixture.recorder.requests) == 1


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("kind", ["agent", "session"])
def test_an_object_whose_answer_was_lost_is_created_once(
    http: httpx.Client, headers: list[dict[str, str]], kind: str
) -> None:
    agent = http.post("/v1/agents", json={"agent_config": agent_config()}).json()["agent_id"]
    path, body, listed = {
        "agent": ("/agents/create", {"agent_config": CONFIG}, "/v1/agents"),
        "session": (
            "/agents/session/create",
            {"agent_id": agent, "session_name": "talk"},
            f"/v1/agents/{agent}/sessions",
        ),
    }[kind]
    before = len(http.get(listed).json()["data"])

    first = http.post(path, json=body, headers=headers[0])
    CLOCK.move(LEASE + 1 if "idempotency-key" in headers[0] else 0)
    again = http.post(path, json=body, headers=headers[1])

    assert (first.status_code, again.json()) == (200, first.json())
    assert len(http.get(listed).json()["data"]) == before + 1


@pytest.mark.usefixtures("lost")
def test_a_bank_whose_answer_was_lost_is_created_once(http: httpx.Client) -> None:
    headers = {"idempotency-key": new_id()}
    body = {"name": "facts", "config": {"type": "keyword"}}

    first = http.post("/memory/create", json=body, headers=headers)
    CLOCK.move(LEASE + 1)
    again = http.post("/memory/create", json=body, headers=headers)

    assert (first.status_code, again.json()) == (200, first.json())
    assert [bank["bank_id"] for bank in http.get("/memory/list").json()] == [first.json()["bank_id"]]


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_turn_is_repeated_if_nothing_was_done(
    http: httpx.Client, headers: list[dict[str, str]], stream: bool
) -> None:
    session = open_session(http)
    body = turn_body(session, "fail: overloaded", stream=stream)

    answers = [http.post("/agents/turn/create", json=body, headers=each) for each in headers]

    assert all("model_overloaded" in each.text for each in answers)
    assert len(turns_of(http, session)) == 2
