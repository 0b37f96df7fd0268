"""Retries of requests that interrupt: they find the run of their first attempt, and do not interrupt it."""

import json
import threading
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turns_of, user
from tests.api.app_fixture import AppFixture, wait_until
from tests.api.responses_client import RESPONSES
from tests.api.test_when_busy import SLOW

from stint.services.background.response_requests import ResponseRequests
from stint.services.turns.turn_requests import TurnRequests


class Attempt(threading.Thread):
    """An attempt of a request whose answer is read by another thread."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any], count: int) -> None:
        super().__init__(daemon=True)
        self.http, self.path, self.body = http, path, body
        self.headers = {"x-stainless-retry-count": str(count)}
        self.start()

    def run(self) -> None:
        self.text = self.http.post(self.path, json=self.body, headers=self.headers).text

    def answer(self) -> dict[str, Any]:
        self.join(60)
        found: dict[str, Any] = json.loads(self.text)
        return found


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let retries arrive before the first attempt has started its run."""

    async def find_nothing(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(TurnRequests, "find_earlier", find_nothing)
    monkeypatch.setattr(ResponseRequests, "find_earlier", find_nothing)


def send_twice(app_fixture: AppFixture, http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Send a request that interrupts, and its retry while the first one runs."""
    first = Attempt(http, path, body | {"when_busy": "interrupt"}, 0)
    wait_until(lambda: app_fixture.proxy.calls["PutItem"] > 0)  # the header
    app_fixture.proxy.forget()
    retry = Attempt(http, path, body | {"when_busy": "interrupt"}, 1)
    wait_until(lambda: app_fixture.proxy.calls["PutItem"] > 0)  # the claim of the retry
    app_fixture.faulty.silence.set()
    return [first.answer(), retry.answer()]


def test_a_retry_that_interrupts_follows_the_turn_of_the_first_attempt(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http, model=SLOW)
    app_fixture.proxy.forget()

    first, retry = send_twice(app_fixture, http, f"{session}/turn", {"messages": [user("two")]})

    assert (first["status"], retry) == ("completed", first)
    assert len(turns_of(http, session)) == 1


def test_a_retry_that_interrupts_follows_the_response_of_the_first_attempt(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    app_fixture.proxy.forget()

    body = {"model": SLOW, "conversation": conversation, "input": "two"}
    first, retry = send_twice(app_fixture, http, RESPONSES, body)

    assert (first["status"], retry) == ("completed", first)
