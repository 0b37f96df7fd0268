"""Responses inside a conversation."""

import time
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import LEASE, AppFixture, run_in_thread
from tests.api.responses_client import (
    RESPONSES,
    Body,
    assert_refused,
    follow,
    get,
    post,
    respond,
    user,
)
from tests.clock import CLOCK
from tests.script_model import words_of

from stint.domain.openai.stored_responses import ResponseHeader

NOWHERE = "conv_" + "0" * 32


@pytest.fixture
def conversation(http: httpx.Client) -> str:
    return str(http.post("/v1/conversations").json()["id"])


def items_of(http: httpx.Client, conversation: str) -> list[Body]:
    return list(http.get(f"/v1/conversations/{conversation}/items?order=asc&limit=100").json()["data"])


def ids_of(items: list[Body]) -> list[str]:
    return [item["id"] for item in items]


def words(app_fixture: AppFixture) -> list[str]:
    return [words_of(message) for message in app_fixture.last_request.messages]


def test_what_is_said_is_added_in_order_by_the_ids_of_the_response(http: httpx.Client, conversation: str) -> None:
    first = respond(http, [user("one"), user("think: Hm\nsay: two")], conversation=conversation)
    second = respond(http, "say: three", conversation={"id": conversation})

    items = items_of(http, conversation)
    own = http.get(f"{RESPONSES}/{first['id']}/input_items?order=asc").json()["data"]
    assert ids_of(items) == [*ids_of(own), *ids_of(first["output"]), items[4]["id"], *ids_of(second["output"])]
    assert [item["type"] for item in items] == ["message", "message", "reasoning", "message", "message", "message"]
    assert first["conversation"] == second["conversation"] == {"id": conversation}
    assert get(http, second["id"])["conversation"] == {"id": conversation}


def test_the_model_sees_the_conversation(http: httpx.Client, conversation: str, app_fixture: AppFixture) -> None:
    http.post(f"/v1/conversations/{conversation}/items", json={"items": [user("one")]})
    respond(http, "say: two", conversation=conversation)

    respond(http, "three", conversation=conversation, model="recorded/m")

    assert words(app_fixture) == ["one", "say: two", "two", "three"]


def test_a_response_that_failed_adds_nothing(http: httpx.Client, conversation: str) -> None:
    follow(http, "say: one two three\nfail: after 2 words", conversation=conversation)
    assert_refused(post(http, "fail: before", conversation=conversation), 502, "model_error")

    assert items_of(http, conversation) == []
    assert respond(http, "say: Hi", conversation=conversation)["status"] == "completed"


def test_an_incomplete_response_adds_what_there_is_of_it(http: httpx.Client, conversation: str) -> None:
    respond(http, "long: 100 words", conversation=conversation, max_output_tokens=16)

    assert [item["status"] for item in items_of(http, conversation)] == ["completed", "incomplete"]


def test_the_lock_is_free_when_the_last_event_leaves(http: httpx.Client, conversation: str) -> None:
    for said in ("say: one", "say: one two\nfail: after 1 words"):
        body = {"model": "scripted/demo", "input": said, "stream": True, "conversation": conversation}
        with http.stream("POST", RESPONSES, json=body) as running:
            for line in running.iter_lines():
                if line in ("event: response.completed", "event: response.failed"):
                    again = respond(http, "say: again", conversation=conversation)
        assert again["status"] == "completed"


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "nobody/nothing"},
        {"input": [user([{"type": "input_file", "filename": "a.xyz", "file_data": "AAAA"}])]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": 5}}}},
    ],
)
def test_a_refused_response_leaves_the_conversation_free(http: httpx.Client, conversation: str, fields: Any) -> None:
    assert post(http, **({"conversation": conversation} | fields)).status_code == 400

    assert respond(http, "say: Hi", conversation=conversation)["status"] == "completed"


def test_the_lock_of_a_process_that_died_runs_out_and_its_response_has_failed(
    http: httpx.Client, conversation: str, app_fixture: AppFixture
) -> None:
    dead = ResponseHeader(response_id="resp_" + "0" * 32, created_at=1, model="m", until=time.time() + 900)
    run_in_thread(app_fixture.store.responses.put(app_fixture.tenant, dead))
    leases = app_fixture.store.conversation_leases
    run_in_thread(leases.acquire(app_fixture.tenant, conversation, dead.response_id, LEASE))

    assert_refused(post(http, conversation=conversation), 409, "conversation_locked")
    assert http.get(f"/v1/responses/{dead.response_id}").json()["status"] == "in_progress"
    CLOCK.move(LEASE)

    assert respond(http, "say: Hi", conversation=conversation)["status"] == "completed"
    left = http.get(f"/v1/responses/{dead.response_id}").json()
    assert (left["status"], left["error"]["code"]) == ("failed", "interrupted")


def test_a_conversation_that_is_not_there_is_not_found(http: httpx.Client) -> None:
    for missing in (NOWHERE, "nonsense"):
        assert_refused(post(http, conversation=missing), 404, "conversation_not_found")


def test_an_item_that_was_deleted_is_not_told(http: httpx.Client, conversation: str, app_fixture: AppFixture) -> None:
    said = respond(http, "say: plums", conversation=conversation)
    http.delete(f"/v1/conversations/{conversation}/items/{said['output'][0]['id']}")

    respond(http, "go", conversation=conversation, model="recorded/m")

    assert words(app_fixture) == ["say: plums", "go"]
