"""Sessions of OpenAI's Agents API belong to their end users, and leave nothing when they are erased or deleted."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.agents_api_client import (
    AGENT,
    BETA,
    CANCEL,
    NONE,
    SESSIONS,
    WEATHER,
    Body,
    message,
    post_events,
    result_of,
)
from tests.api.app_fixture import AppFixture
from tests.api.test_agents_api_mcp import SHOP
from tests.api.test_end_users import MARK, erase, listed, stored_bytes
from tests.servers.kms import KEY, KmsServer
from tests.services.worker_fixture import FakeMcp

ANN = {"X-Stint-User": "ann"}
BOB = {"X-Stint-User": "bob"}
SECRET = "sk-very-secret-1234567890"
TWO_CALLS = 'call: get_weather {"city": "plums of ann"}\ncall: get_time {"city": "plums of ann"}'
MARKED = WEATHER | {"description": MARK}


@pytest.fixture
def shop(app_fixture: AppFixture) -> Iterator[FakeMcp]:
    provider = FakeMcp()
    app_fixture.tool_providers = {"model-context-protocol": provider}
    app_fixture.made.clear()
    yield provider
    app_fixture.tool_providers = None
    app_fixture.made.clear()


@pytest.fixture
def encrypted(app_fixture: AppFixture, shop: FakeMcp, kms: KmsServer) -> Iterator[FakeMcp]:
    """Yield the provider of a stack that encrypts the credentials of agents."""
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"credentials_key_arn": KEY})
    yield shop
    app_fixture.settings = settings


def create(http: httpx.Client, said: str, *, headers: dict[str, str] = ANN, **fields: Any) -> Body:
    agent = AGENT | {"instructions": MARK, "tools": [MARKED, WEATHER | {"name": "get_time"}]} | fields.pop("agent", {})
    body = {"environment": NONE, "agent": agent, "input": said, "metadata": {"fruit": MARK}} | fields
    answer = http.post(SESSIONS, json=body, headers=BETA | headers)
    assert answer.status_code == 200, answer.text
    created: Body = answer.json()
    return created


class Action:
    def __init__(self, action: Body) -> None:
        self.turn_id, self.call_id = action["turn_id"], action["call_id"]


def pause(http: httpx.Client, app_fixture: AppFixture) -> tuple[str, list[Action]]:
    """Return a session of ann with results, a message in line, settings of its own, and answers of keys."""
    session_id = create(http, TWO_CALLS, headers=ANN | {"Idempotency-Key": "k1"})["id"]
    app_fixture.run_waiting()
    changed = http.post(f"{SESSIONS}/{session_id}", json={"metadata": {"a": MARK}}, headers=BETA | ANN)
    assert changed.status_code == 200
    actions = [Action(each) for each in changed.json()["required_actions"]]
    posted = post_events(http, session_id, result_of(actions[0], MARK), **ANN, **{"Idempotency-Key": "k2"})
    assert posted.status_code == 202
    posted = post_events(http, session_id, message(MARK * 40_000), **ANN, **{"Idempotency-Key": "k3"})
    assert posted.status_code == 202
    return session_id, actions


def test_an_erasure_leaves_nothing_of_a_session(http: httpx.Client, app_fixture: AppFixture) -> None:
    session_id, _ = pause(http, app_fixture)
    assert session_id in [each["id"] for each in listed(http, "ann")]
    assert MARK.encode() in stored_bytes(app_fixture)

    receipt = erase(http, "ann")

    assert (receipt["complete"], receipt["deleted"]["session"]) == (True, 1)
    assert MARK.encode() not in stored_bytes(app_fixture)
    app_fixture.run_waiting()
    assert MARK.encode() not in stored_bytes(app_fixture)
    assert http.get(SESSIONS, headers=BETA).json()["data"] == []


def test_a_deletion_leaves_nothing_of_a_session(http: httpx.Client, app_fixture: AppFixture) -> None:
    session_id, _ = pause(http, app_fixture)
    deleted = http.delete(f"{SESSIONS}/{session_id}", headers=BETA | ANN)
    assert deleted.status_code == 200, deleted.text

    app_fixture.run_waiting()

    left = [each["kind"] for each in listed(http, "ann")]
    assert left == ["idempotent_request"] * 3  # the answers of its keys stay for a day
    erase(http, "ann")
    assert MARK.encode() not in stored_bytes(app_fixture)
    assert http.get(f"{SESSIONS}/{session_id}/events", headers=BETA).status_code == 404
    assert http.get(SESSIONS, headers=BETA).json()["data"] == []


def test_another_end_user_can_send_nothing_to_a_session(http: httpx.Client, app_fixture: AppFixture) -> None:
    session_id, actions = pause(http, app_fixture)
    before = app_fixture.queue.waiting[:]

    for event in (message("hi"), result_of(actions[1]), CANCEL):
        answer = post_events(http, session_id, event, **BOB)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other_end_user")

    assert app_fixture.queue.waiting == before
    shown = http.get(f"{SESSIONS}/{session_id}", headers=BETA | ANN).json()
    assert [each["call_id"] for each in shown["required_actions"]] == [actions[1].call_id]


def test_a_refused_creation_leaves_no_session(http: httpx.Client, app_fixture: AppFixture) -> None:
    bodies: list[Body] = [
        {"agent": AGENT | {"instructions": MARK}, "input": [image("data:image/png;base64,AAAA")]},
        {"agent": AGENT | {"instructions": MARK}, "input": [image("http://127.0.0.1/x.png")]},
        {"agent": AGENT | {"instructions": MARK, "tools": [SHOP]}},
    ]
    for body in bodies:
        answer = http.post(SESSIONS, json={"environment": NONE, "input": "Hello"} | body, headers=BETA | ANN)
        assert answer.status_code == 400, answer.text
        assert MARK.encode() not in stored_bytes(app_fixture), answer.text
        assert http.get(SESSIONS, headers=BETA).json()["data"] == []


def image(url: str) -> Body:
    return {"role": "user", "content": [{"type": "input_image", "image_url": url}]}


def test_secrets_of_a_server_are_in_no_answer_record_and_log(
    http: httpx.Client, app_fixture: AppFixture, encrypted: FakeMcp, capfd: pytest.CaptureFixture[str]
) -> None:
    transport = SHOP["transport"] | {"authorization": SECRET, "headers": {"X-Key": SECRET[::-1]}}
    tool = SHOP | {"transport": transport}
    answers = [create(http, "call: buy {}", agent={"tools": [tool]})]
    session_id = answers[0]["id"]
    app_fixture.run_waiting()
    answers.append(http.post(f"{SESSIONS}/{session_id}", json={"agent": {"tools": [tool]}}, headers=BETA).json())
    for path in ("", "/items", "/turns"):
        answers.append(http.get(f"{SESSIONS}/{session_id}{path}", headers=BETA).json())

    assert encrypted.calls == ["buy"]
    texts = [str(answers), stored_bytes(app_fixture).decode(errors="replace"), str(capfd.readouterr())]
    for text in texts:
        assert SECRET not in text
        assert SECRET[::-1] not in text
