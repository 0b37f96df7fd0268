"""Messages that wait belong to their end users, and are not accepted from those who were stopped."""

import time
from typing import Any

import httpx
import pytest
from tests.api.api_client import create_agent, open_session, user
from tests.api.app_fixture import AppFixture, run_in_thread
from tests.api.responses_client import RESPONSES, assert_refused
from tests.api.test_end_users import MARK, erase, listed, sent, stored_bytes
from tests.api.test_when_busy import SLOW, Sent, running, waiting, waiting_in
from tests.clock import CLOCK

from stint.domain.stops import stop_name
from stint.http import streaming
from stint.spending.stop_monitor import ANSWER_SECONDS

ANN = "ann"
MODES = ("enqueue", "merge", "interrupt", "reject")
WAITING = {"model": "scripted/demo", "input": MARK, "when_busy": "enqueue"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests without a stream wait for a moment only."""
    monkeypatch.setattr(streaming, "SILENT_SECONDS", 0.1)


def busy(http: httpx.Client, owner: str | None = None) -> tuple[str, Sent]:
    """Start a response of the silent model, and return its conversation."""
    conversation = sent(http, "/v1/conversations", {}, owner)["id"]
    first = Sent(http, RESPONSES, {"model": SLOW, "conversation": conversation, "stream": True, "input": "one"})
    assert first.begun.wait(60)
    return conversation, first


def session_of(http: httpx.Client, who: str) -> str:
    path = f"/v1/agents/{create_agent(http, model=SLOW)}/session"
    return f"{path}/{sent(http, path, {'session_name': 's'}, who)['session_id']}"


def enqueue(http: httpx.Client, session: str, when_busy: str = "enqueue", **headers: str) -> httpx.Response:
    body = {"messages": [user(MARK)], "when_busy": when_busy}
    return http.post(f"{session}/turn", json=body, headers=headers)


def test_an_erasure_deletes_a_response_that_waits(http: httpx.Client, app_fixture: AppFixture) -> None:
    conversation, first = busy(http)
    queued = http.post(RESPONSES, json=WAITING | {"conversation": conversation, "user": ANN})
    deleted = http.post(RESPONSES, json=WAITING | {"conversation": conversation, "user": ANN})
    assert http.delete(f"{RESPONSES}/{deleted.json()['id']}").status_code == 200
    assert http.get(f"{RESPONSES}/{deleted.json()['id']}").status_code == 404
    assert (queued.status_code, listed(http, ANN)) == (202, [{"kind": "conversation", "id": conversation}])

    receipt = erase(http, ANN)
    app_fixture.faulty.silence.set()
    first.join(60)
    app_fixture.run_waiting()

    assert receipt["deleted"] == {"conversation": 1}
    assert http.get(f"{RESPONSES}/{queued.json()['id']}").status_code == 404
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_an_erasure_deletes_a_turn_that_waits(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    assert enqueue(http, session, **{"X-Stint-User": ANN}).status_code == 202
    assert [each["kind"] for each in listed(http, ANN)] == ["session"]
    refused = [enqueue(http, session, when_busy, **{"X-Stint-User": "bob"}) for when_busy in MODES]

    receipt = erase(http, ANN)
    app_fixture.faulty.silence.set()
    first.join(60)
    app_fixture.run_waiting()

    for each in refused:
        assert_refused(each, 403, "other_end_user")
    assert receipt["deleted"] == {"session": 1}
    assert MARK.encode() not in stored_bytes(app_fixture)


def test_an_erasure_deletes_the_answer_of_a_key(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = session_of(http, ANN)
    first = running(http, session)
    assert enqueue(http, session, **{"Idempotency-Key": "k1"}).status_code == 202
    app_fixture.faulty.silence.set()
    first.join(60)

    erase(http, ANN)

    assert MARK.encode() not in stored_bytes(app_fixture)


def test_an_erasure_deletes_the_answer_of_a_key_in_a_conversation(http: httpx.Client, app_fixture: AppFixture) -> None:
    conversation, first = busy(http, ANN)
    body = WAITING | {"conversation": conversation, "instructions": MARK}
    assert http.post(RESPONSES, json=body, headers={"Idempotency-Key": "k1"}).status_code == 202
    app_fixture.faulty.silence.set()
    first.join(60)

    erase(http, ANN)

    assert MARK.encode() not in stored_bytes(app_fixture)
    again = http.post(RESPONSES, json=body, headers={"Idempotency-Key": "k1"})
    assert_refused(again, 404, "conversation_not_found")


@pytest.mark.parametrize("kind", ["session", "tenant"])
def test_a_stop_refuses_a_turn_that_must_wait(http: httpx.Client, app_fixture: AppFixture, kind: Any) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    assert enqueue(http, session).status_code == 202
    name = stop_name(kind, session.rpartition("/")[2])
    run_in_thread(app_fixture.store.stops.add(app_fixture.tenant, name, int(time.time())))

    with CLOCK.wrong(2 * ANSWER_SECONDS):  # the answer of the first one's watch is old
        refused = enqueue(http, session)
    app_fixture.faulty.silence.set()
    first.join(60)

    assert_refused(refused, 403, "stopped")
    assert waiting(app_fixture, session) == 1


@pytest.mark.parametrize("kind", ["conversation", "tenant"])
def test_a_stop_refuses_a_response_that_must_wait(http: httpx.Client, app_fixture: AppFixture, kind: Any) -> None:
    conversation, first = busy(http)
    assert http.post(RESPONSES, json=WAITING | {"conversation": conversation}).status_code == 202
    name = stop_name(kind, conversation)
    run_in_thread(app_fixture.store.stops.add(app_fixture.tenant, name, int(time.time())))

    with CLOCK.wrong(2 * ANSWER_SECONDS):  # the answer of the first one's watch is old
        refused = http.post(RESPONSES, json=WAITING | {"conversation": conversation})
    app_fixture.faulty.silence.set()
    first.join(60)

    assert_refused(refused, 403, "stopped")
    assert waiting_in(app_fixture, conversation) == 1
