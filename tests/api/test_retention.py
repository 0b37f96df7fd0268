"""Expiry of sessions, responses, conversations and chat completions: at once in reads, later in the store."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, create_agent, turn
from tests.api.app_fixture import AppFixture
from tests.clock import CLOCK
from tests.store.tenant_records import list_blobs, read_records

from stint.domain.ids import new_id

HOUR = {"anchor": "created_at", "seconds": 3_600}
LONG = "plums " * 200_000
CHAT = {"model": "scripted/demo", "messages": [{"role": "user", "content": "say: hi"}], "store": True}


def sent(http: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def respond(http: httpx.Client, **fields: Any) -> dict[str, Any]:
    return sent(http, "/v1/responses", {"model": "scripted/demo", "input": "say: hi"} | fields)


def endless_records(app_fixture: AppFixture) -> list[str]:
    """Return the keys of the tenant's records that do not expire."""
    records = read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)
    return [item["pk"]["S"] + item["sk"]["S"] for item in records if "expires_at" not in item]


@pytest.fixture
def retention(app_fixture: AppFixture) -> Iterator[None]:
    """Set a retention of 2 days."""
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"retention_days": 2})
    app_fixture.made.clear()
    yield
    app_fixture.settings = settings
    app_fixture.made.clear()


def test_a_response_does_not_exist_after_its_end(http: httpx.Client) -> None:
    kept, made = respond(http), respond(http, expires_after=HOUR)
    assert made["expires_at"] == pytest.approx(made["created_at"] + 3_600, abs=1)
    assert http.get(f"/v1/responses/{made['id']}").json()["expires_at"] == made["expires_at"]
    assert "expires_at" not in kept

    CLOCK.move(3_601)

    assert_error(http.get(f"/v1/responses/{made['id']}"), 404, "response_not_found")
    assert_error(http.delete(f"/v1/responses/{made['id']}"), 404, "response_not_found")
    assert http.get(f"/v1/responses/{made['id']}/input_items").status_code == 404
    follow = {"model": "scripted/demo", "input": "say: hi", "previous_response_id": made["id"]}
    assert_error(http.post("/v1/responses", json=follow), 400, "previous_response_not_found")
    assert [each["id"] for each in http.get("/v1/responses").json()["data"]] == [kept["id"]]
    assert http.get(f"/v1/responses/{kept['id']}").status_code == 200


def test_all_records_and_bodies_of_a_response_expire(http: httpx.Client, app_fixture: AppFixture) -> None:
    respond(http, expires_after=HOUR, input="say: hi", instructions=LONG)
    body = {"model": "scripted/demo", "input": "say: hi", "expires_after": HOUR, "background": True, "stream": True}
    with app_fixture.working():
        assert "response.completed" in http.post("/v1/responses", json=body | {"user": "ann"}).text

    assert [key for key in endless_records(app_fixture) if not key.endswith("lease")] == []
    blobs = list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant)
    assert {key.partition("/")[0] for key in blobs} <= {"expiring"}


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_of_an_idempotency_key_ends_with_its_response(http: httpx.Client, stream: bool) -> None:
    body = {"model": "scripted/demo", "input": "say: hi", "expires_after": HOUR, "stream": stream}
    headers = {"idempotency-key": new_id()}
    first = http.post("/v1/responses", json=body, headers=headers)
    assert http.post("/v1/responses", json=body, headers=headers).content == first.content

    CLOCK.move(3_601)
    again = http.post("/v1/responses", json=body, headers=headers)

    assert again.status_code == 200
    assert "idempotent-replayed" not in again.headers
    assert again.content != first.content


def test_the_answer_of_an_idempotency_key_ends_with_the_session_of_its_turn(http: httpx.Client) -> None:
    agent = create_agent(http)
    session = sent(http, f"/v1/agents/{agent}/session", {"session_name": "s", "expires_after": HOUR})["session_id"]
    path, headers = f"/v1/agents/{agent}/session/{session}/turn", {"idempotency-key": new_id()}
    body = {"messages": [{"role": "user", "content": "say: hi"}], "stream": False}
    assert http.post(path, json=body, headers=headers).status_code == 200

    CLOCK.move(3_601)

    assert http.post(path, json=body, headers=headers).status_code == 404


def test_a_conversation_does_not_exist_after_its_end(http: httpx.Client, app_fixture: AppFixture) -> None:
    item = {"type": "message", "role": "user", "content": "hi"}
    made = sent(http, "/v1/conversations", {"expires_after": HOUR, "items": [item]})
    path = f"/v1/conversations/{made['id']}"
    respond(http, conversation=made["id"], expires_after=HOUR)
    sent(http, f"{path}/items", {"items": [item]})
    assert endless_records(app_fixture) == []

    CLOCK.move(3_601)

    for response in (
        http.get(path),
        http.get(f"{path}/items"),
        http.post(path, json={"metadata": {}}),
        http.post(f"{path}/items", json={"items": [item]}),
        http.delete(path),
    ):
        assert_error(response, 404, "conversation_not_found")
    assert http.get("/v1/conversations").json()["data"] == []
    body = {"model": "scripted/demo", "input": "hi", "conversation": made["id"]}
    assert_error(http.post("/v1/responses", json=body), 404, "conversation_not_found")


def test_a_session_does_not_exist_after_its_end(http: httpx.Client, app_fixture: AppFixture) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"
    session = f"{path}/{sent(http, path, {'session_name': 's', 'expires_after': HOUR})['session_id']}"
    turn(http, session, "say: hi")
    assert [key for key in endless_records(app_fixture) if "#session" in key] == []

    CLOCK.move(3_601)

    assert_error(http.get(session), 404, "session_not_found")
    body = {"messages": [{"role": "user", "content": "hi"}]}
    assert_error(http.post(f"{session}/turn", json=body), 404, "session_not_found")


@pytest.mark.usefixtures("retention")
def test_the_stack_sets_the_retention_of_requests_without_one(http: httpx.Client, app_fixture: AppFixture) -> None:
    made = respond(http)
    conversation = sent(http, "/v1/conversations", {})
    chat = sent(http, "/v1/chat/completions", CHAT)
    path = f"/v1/agents/{create_agent(http)}/session"
    session = f"{path}/{sent(http, path, {'session_name': 's'})['session_id']}"
    assert made["expires_at"] == pytest.approx(made["created_at"] + 2 * 86_400, abs=1)
    assert [key for key in endless_records(app_fixture) if "#agent" not in key] == []

    CLOCK.move(2 * 86_400 + 1)

    paths = (f"/v1/responses/{made['id']}", f"/v1/conversations/{conversation['id']}")
    for each in (*paths, f"/v1/chat/completions/{chat['id']}", session):
        assert http.get(each).status_code == 404


@pytest.mark.parametrize("seconds", [0, 3_599, 2_592_001, "x", None])
def test_an_invalid_lifetime_is_refused(http: httpx.Client, seconds: Any) -> None:
    body = {"model": "scripted/demo", "input": "hi", "expires_after": {"anchor": "created_at", "seconds": seconds}}

    response = http.post("/v1/responses", json=body)

    assert response.status_code == 400
    assert "expires_after" in json.dumps(response.json())


def test_a_lifetime_costs_no_write_unit(http: httpx.Client, app_fixture: AppFixture) -> None:
    names = ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem")
    respond(http)
    units = []
    for fields in ({}, {"expires_after": HOUR}):
        app_fixture.proxy.forget()
        respond(http, **fields)
        units.append(sum(app_fixture.proxy.units[name] for name in names))

    assert units[0] == units[1]
