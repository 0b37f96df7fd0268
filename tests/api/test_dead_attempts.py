"""Retries that arrive while the process of their first attempt has died, and its leases are still held."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turns_of, user
from tests.api.app_fixture import LEASE, AppFixture, wait_until
from tests.clock import CLOCK

from stint.domain.ids import new_id
from stint.domain.inference import Accepted, Finished, FinishReason, InferenceRequest, ModelChunk, TextChunk
from stint.loop.lease_keeper import LeaseKeeper
from stint.services.idempotency import requests
from stint.store.turns import TurnStore

RESPONSES, ATTEMPT = "/v1/responses", "attempt"


class Stalled:
    """A model whose first call never ends, until the test ends it."""

    def __init__(self) -> None:
        self.requests: list[InferenceRequest] = []
        self.over = threading.Event()

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        self.requests.append(request)
        yield Accepted()
        if len(self.requests) == 1:
            yield TextChunk("This is lost. " * 200)
            await asyncio.to_thread(self.over.wait)
        yield TextChunk("fine")
        yield Finished(FinishReason.stop)


@pytest.fixture
def stalled(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stalled]:
    """Return the model of a process that renews no lease, as if it had died in its first call of the model."""
    model = Stalled()
    app_fixture.models["stalled"] = lambda: model
    app_fixture.made.clear()

    async def renew_nothing(_: LeaseKeeper[Any]) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(LeaseKeeper, "keep_renewing", renew_nothing)
    yield model
    model.over.set()
    for thread in threading.enumerate():
        if thread.name == ATTEMPT:
            thread.join(60)
    del app_fixture.models["stalled"]
    app_fixture.made.clear()


class Attempts:
    """A request, each of whose attempts is sent by a thread."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any], key: str | None) -> None:
        self.http, self.path, self.body, self.key = http, path, body, key
        self.threads: list[threading.Thread] = []
        self.answers: dict[int, httpx.Response] = {}
        self.begun: set[int] = set()

    def send(self) -> None:
        thread = threading.Thread(target=self.post, args=(len(self.threads),), name=ATTEMPT, daemon=True)
        self.threads.append(thread)
        thread.start()

    def post(self, count: int) -> None:
        headers = {"idempotency-key": self.key} if self.key else {"x-stainless-retry-count": str(count)}
        with self.http.stream("POST", self.path, json=self.body, headers=headers) as response:
            text = ""
            for chunk in response.iter_text():
                text += chunk
                self.begun |= {count} if "data:" in text else set()
        self.answers[count] = httpx.Response(response.status_code, text=text)

    def answer(self, count: int) -> httpx.Response:
        self.threads[count].join(60)
        return self.answers[count]


@pytest.fixture(params=[False, True], ids=["counted", "keyed"])
def key(request: pytest.FixtureRequest) -> str | None:
    return new_id() if request.param else None


def retry_after_death(attempts: Attempts, app_fixture: AppFixture, stalled: Stalled, retries: int = 1) -> None:
    """Send a request whose process dies, and retries of it, which wait when its leases lapse."""
    attempts.send()
    wait_until(lambda: len(stalled.requests) == 1)
    for _ in range(retries):
        app_fixture.proxy.forget()
        attempts.send()
        wait_until(lambda: app_fixture.proxy.calls["Query"] >= 3)  # the retry reads the log of the dead process
    assert not attempts.answers
    CLOCK.move(LEASE + 1)


def without_heartbeats(answer: httpx.Response) -> str:
    return answer.text.replace(": keep-alive\n\n", "").replace(": keep-alive\n", "")


def texts_of(request: InferenceRequest) -> list[str]:
    """Return the user's texts of a request to the model."""
    found = [getattr(message, "content", "") for message in request.messages if type(message).__name__ == "UserInput"]
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


def test_a_retry_runs_the_turn_of_a_dead_process_again(
    http: httpx.Client, app_fixture: AppFixture, stalled: Stalled, key: str | None
) -> None:
    session = open_session(http, model="stalled/x")
    attempts = Attempts(http, f"{session}/turn", {"messages": [user("Hello")], "stream": key is not None}, key)

    retry_after_death(attempts, app_fixture, stalled)
    answer = attempts.answer(1)

    assert answer.status_code == 200
    assert "fine" in answer.text
    assert "lost" not in answer.text
    dead, again = turns_of(http, session)
    assert (dead["status"], dead["error"]["code"], again["status"]) == ("failed", "interrupted", "completed")
    assert [texts_of(each) for each in stalled.requests] == [["Hello"]] * 2


def test_a_retry_runs_the_response_of_a_dead_process_again(
    http: httpx.Client, app_fixture: AppFixture, stalled: Stalled, key: str | None
) -> None:
    attempts = Attempts(http, RESPONSES, {"model": "stalled/x", "input": "Hello", "stream": key is not None}, key)

    retry_after_death(attempts, app_fixture, stalled)
    answer = attempts.answer(1)

    assert answer.status_code == 200
    assert "fine" in answer.text
    assert "lost" not in answer.text
    again, dead = http.get(RESPONSES).json()["data"]
    assert (dead["status"], dead["error"]["code"], again["status"]) == ("failed", "interrupted", "completed")
    assert len(stalled.requests) == 2


@pytest.mark.parametrize("kind", ["turn", "response"])
def test_of_several_retries_that_wait_for_a_dead_process_one_runs_it_again(
    http: httpx.Client, app_fixture: AppFixture, stalled: Stalled, key: str | None, kind: str
) -> None:
    session = open_session(http, model="stalled/x") if kind == "turn" else ""
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "turn": (f"{session}/turn", {"messages": [user("Hello")]}),
        "response": (RESPONSES, {"model": "stalled/x", "input": "Hello"}),
    }
    attempts = Attempts(http, *places[kind], key)

    retry_after_death(attempts, app_fixture, stalled, retries=2)
    answers = [attempts.answer(1), attempts.answer(2)]
    while refused := [each for each in answers if each.status_code == 409]:
        answers.remove(refused[0])
        attempts.send()
        answers.append(attempts.answer(len(attempts.threads) - 1))

    assert len({each.json().get("turn_id") or each.json()["id"] for each in answers}) == 1
    assert len(stalled.requests) == 2


@pytest.mark.parametrize("kind", ["turn", "response"])
def test_a_retry_follows_a_process_that_has_renewed_its_lease(
    http: httpx.Client, app_fixture: AppFixture, key: str | None, kind: str
) -> None:
    session = open_session(http, model="faulty/gated") if kind == "turn" else ""
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "turn": (f"{session}/turn", {"messages": [user("Hello")], "stream": True}),
        "response": (RESPONSES, {"model": "faulty/gated", "input": "Hello", "stream": True}),
    }
    attempts = Attempts(http, *places[kind], key)
    attempts.send()
    listed = (lambda: turns_of(http, session)) if kind == "turn" else (lambda: http.get(RESPONSES).json()["data"])
    wait_until(lambda: len(listed()) == 1)
    app_fixture.proxy.forget()
    attempts.send()
    wait_until(lambda: app_fixture.proxy.calls["Query"] >= 3)
    assert attempts.begun == {0}
    CLOCK.move(LEASE / 3 + 1)
    wait_until(lambda: 1 in attempts.begun)
    app_fixture.faulty.silence.set()

    first, second = (without_heartbeats(attempts.answer(count)) for count in range(2))
    assert second == first
    assert "awake" in first
    assert len(listed()) == 1


def test_a_repetition_waits_for_the_session_of_a_dead_process_that_stored_no_turn(
    http: httpx.Client, app_fixture: AppFixture, stalled: Stalled, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(http, model="stalled/x")
    attempts = Attempts(http, f"{session}/turn", {"messages": [user("Hello")]}, new_id())
    put, begun = TurnStore.put_header, threading.Event()

    async def put_later(*arguments: Any) -> int:
        if not begun.is_set():
            begun.set()
            await asyncio.to_thread(stalled.over.wait)
        return await put(*arguments)

    monkeypatch.setattr(TurnStore, "put_header", put_later)
    monkeypatch.setattr(requests, "lease_span", lambda *_: LEASE / 2)
    attempts.send()
    assert begun.wait(60)
    CLOCK.move(LEASE / 2 + 1)  # the key's lease has lapsed, and that of the session has not
    app_fixture.proxy.forget()
    attempts.send()
    wait_until(lambda: bool(attempts.answers) or app_fixture.proxy.calls["GetItem"] >= 9)  # it looks again
    assert not attempts.answers
    CLOCK.move(LEASE / 2 + 1)

    assert "fine" in attempts.answer(1).text
    assert [turn["status"] for turn in turns_of(http, session)] == ["completed"]
