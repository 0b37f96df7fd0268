"""Idempotency keys of requests whose first attempt created its object, but left no answer."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, create_agent, open_session, turns_of, user
from tests.api.app_fixture import LEASE, AppFixture
from tests.clock import CLOCK

from stint.domain.ids import new_id

Send = Callable[[], httpx.Response]


def file_of(http: httpx.Client) -> str:
    files = {"file": ("facts.txt", b"Llamas live in the Andes.")}
    return str(http.post("/v1/files", files=files, data={"purpose": "assistants"}).json()["id"])


def whole_of(answer: httpx.Response) -> tuple[str, str, str | None]:
    """Return the id, the text and the reason of the end of a completion, which may be streamed."""
    if answer.headers["content-type"].startswith("application/json"):
        [choice] = answer.json()["choices"]
        return answer.json()["id"], choice["message"]["content"], choice["finish_reason"]
    lines = [line[6:] for line in answer.text.split("\n\n") if line.startswith("data: {")]
    chunks = [json.loads(line) for line in lines]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return chunks[0]["id"], text, choices[-1]["finish_reason"]


def sender(http: httpx.Client, path: str, body: dict[str, Any] | None, **form: Any) -> Send:
    key = {"idempotency-key": new_id()}
    return lambda: http.post(path, json=body, headers=key, **form)


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("kind", ["agent", "session", "conversation"])
def test_an_object_whose_answer_was_not_stored_is_created_once(http: httpx.Client, kind: str) -> None:
    agent = create_agent(http)
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "agent": ("/v1/agents", {"agent_config": agent_config()}),
        "session": (f"/v1/agents/{agent}/session", {"session_name": "talk"}),
        "conversation": ("/v1/conversations", {}),
    }
    path, body = places[kind]
    send = sender(http, path, body)

    first = send()
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [each.status_code for each in (first, *again)] == [200] * 3
    assert [each.json() for each in again] == [first.json()] * 2


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("kind", ["file", "upload", "part", "vector_store", "batch"])
def test_knowledge_whose_answer_was_not_stored_is_created_once(http: httpx.Client, kind: str) -> None:
    files = {"file": ("facts.txt", b"Llamas live in the Andes.")}
    upload = {"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    made = http.post("/v1/uploads", json=upload).json()["id"]
    file, store = file_of(http), http.post("/v1/vector_stores", json={"name": "Plants"}).json()["id"]
    send = {
        "file": sender(http, "/v1/files", None, files=files, data={"purpose": "assistants"}),
        "upload": sender(http, "/v1/uploads", upload),
        "part": sender(http, f"/v1/uploads/{made}/parts", None, files={"data": ("part", b"Hello")}),
        "vector_store": sender(http, "/v1/vector_stores", {"name": "Animals"}),
        "batch": sender(http, f"/v1/vector_stores/{store}/file_batches", {"file_ids": [file]}),
    }[kind]

    first = send()
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [each.status_code for each in (first, *again)] == [200] * 3
    assert {each.json()["id"] for each in again} == {first.json()["id"]}


@pytest.mark.usefixtures("lost")
def test_items_whose_answer_was_not_stored_are_added_once(http: httpx.Client) -> None:
    path = f"/v1/conversations/{http.post('/v1/conversations', json={}).json()['id']}/items"
    send = sender(http, path, {"items": [user("one"), user("two")]})

    first = send()
    http.post(path, json={"items": [user("three")]})
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [each.json() for each in again] == [first.json()] * 2
    listed = http.get(path, params={"order": "asc"}).json()["data"]
    assert [item["content"][0]["text"] for item in listed] == ["one", "two", "three"]
    assert [item["id"] for item in listed[:2]] == [item["id"] for item in first.json()["data"]]


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("stream", [False, True])
def test_a_stored_completion_whose_answer_was_not_stored_runs_once(
    http: httpx.Client, app_fixture: AppFixture, stream: bool
) -> None:
    body = {"model": "recorded/x", "messages": [user("say: once")], "store": True, "stream": stream}
    send = sender(http, "/v1/chat/completions", body)

    first = send()
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [whole_of(each) for each in again] == [whole_of(first)] * 2
    assert len(http.get("/v1/chat/completions").json()["data"]) == len(app_fixture.recorder.requests) == 1


def test_a_stored_completion_that_failed_to_be_stored_is_stored_once(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    send = sender(http, "/v1/chat/completions", {"model": "recorded/x", "messages": [user("say: once")], "store": True})

    with app_fixture.proxy.fail("PutItem", "InternalServerError", times=3, performed=True):
        refused = send()
    again = send()

    assert (refused.status_code, again.status_code) == (503, 200)
    assert "The completion could not be stored" in refused.text
    listed = http.get("/v1/chat/completions").json()["data"]
    assert [each["id"] for each in listed] == [again.json()["id"]]


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_whose_answer_was_not_stored_runs_once(
    http: httpx.Client, app_fixture: AppFixture, stream: bool
) -> None:
    session = open_session(http, model="recorded/x")
    send = sender(http, f"{session}/turn", {"messages": [user("say: once")], "stream": stream})

    first = send()
    CLOCK.move(LEASE + 1)
    http.post(f"{session}/turn", json={"messages": [user("say: more")]})
    again = [send(), send()]

    assert [each.text for each in again] == [first.text] * 2
    assert len(turns_of(http, session)) == len(app_fixture.recorder.requests) == 2


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_whose_answer_was_not_stored_runs_once(
    http: httpx.Client, app_fixture: AppFixture, stream: bool
) -> None:
    send = sender(http, "/v1/responses", {"model": "recorded/x", "input": "say: once", "stream": stream})

    first = send()
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [each.text for each in again] == [first.text] * 2
    assert len(http.get("/v1/responses").json()["data"]) == len(app_fixture.recorder.requests) == 1


def test_a_session_whose_write_may_have_happened_is_created_once(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http)
    send = sender(http, f"/v1/agents/{agent}/session", {"session_name": "talk"})

    with app_fixture.proxy.fail("TransactWriteItems", "InternalServerError", times=1, performed=True):
        refused = send()
    again = [send(), send()]

    assert refused.status_code == 503
    assert [each.status_code for each in again] == [200, 200]
    listed = http.get(f"/v1/agents/{agent}/sessions").json()["data"]
    assert [each["session_id"] for each in listed] == [each.json()["session_id"] for each in again[:1]]


def test_a_vector_store_that_was_created_without_its_files_gets_them(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    send = sender(http, "/v1/vector_stores", {"name": "Animals", "file_ids": [file_of(http)]})

    with app_fixture.proxy.fail("TransactWriteItems", "InternalServerError", times=20):
        refused = send()
    again = send()

    assert refused.status_code == 503
    assert [each["id"] for each in http.get("/v1/vector_stores").json()["data"]] == [again.json()["id"]]
    assert again.json()["file_counts"]["total"] == 1


def test_a_turn_that_failed_with_its_model_overloaded_is_run_again(http: httpx.Client) -> None:
    session = open_session(http)
    send = sender(http, f"{session}/turn", {"messages": [user("fail: overloaded")]})

    answers = [send(), send()]

    assert [each.status_code for each in answers] == [503, 503]
    assert len({each.json()["error"]["turn_id"] for each in answers}) == len(turns_of(http, session)) == 2


def test_a_turn_that_its_model_refused_is_refused_again_without_a_second_one(http: httpx.Client) -> None:
    session = open_session(http)
    send = sender(http, f"{session}/turn", {"messages": [user("fail: context")]})

    first, again = send(), send()

    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert len(turns_of(http, session)) == 1
