"""Idempotency keys of requests whose first attempt created its object, but left no answer."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, create_agent, open_session, turns_of, user
from tests.api.app_fixture import LEASE, AppFixture
from tests.clock import CLOCK

from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id
from stint.store.idempotent_requests import RequestRecords

Send = Callable[[], httpx.Response]


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the first answer of a key impossible to store, as if its process had died then."""
    lost: list[int] = []
    put = RequestRecords.put_answer

    async def put_after_first(*args: Any) -> None:
        lost.append(1)
        if len(lost) == 1:
            raise StoreUnavailable("The database does not respond. Try again.")
        await put(*args)

    monkeypatch.setattr(RequestRecords, "put_answer", put_after_first)
    return lost


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
@pytest.mark.parametrize("kind", ["file", "upload", "vector_store"])
def test_knowledge_whose_answer_was_not_stored_is_created_once(http: httpx.Client, kind: str) -> None:
    files = {"file": ("facts.txt", b"Llamas live in the Andes.")}
    upload = {"bytes": 5, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    send = {
        "file": sender(http, "/v1/files", None, files=files, data={"purpose": "assistants"}),
        "upload": sender(http, "/v1/uploads", upload),
        "vector_store": sender(http, "/v1/vector_stores", {"name": "Animals"}),
    }[kind]

    first = send()
    CLOCK.move(LEASE + 1)
    again = [send(), send()]

    assert [each.status_code for each in (first, *again)] == [200] * 3
    assert {each.json()["id"] for each in again} == {first.json()["id"]}


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

    with app_fixture.proxy.fail("PutItem", "InternalServerError", times=1, performed=True):
        refused = send()
    again = [send(), send()]

    assert refused.status_code == 503
    assert [each.status_code for each in again] == [200, 200]
    listed = http.get(f"/v1/agents/{agent}/sessions").json()["data"]
    assert [each["session_id"] for each in listed] == [each.json()["session_id"] for each in again[:1]]


def test_a_vector_store_that_was_created_without_its_files_gets_them(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    files = {"file": ("facts.txt", b"Llamas live in the Andes.")}
    file = http.post("/v1/files", files=files, data={"purpose": "assistants"}).json()["id"]
    send = sender(http, "/v1/vector_stores", {"name": "Animals", "file_ids": [file]})

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
