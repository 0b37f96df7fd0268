"""Repetitions with an Idempotency-Key while the first request runs: they follow its stream, and run nothing."""

import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import answers_to, create_agent, create_session, open_session, post_silent, turns_of, user
from tests.api.app_fixture import LEASE, AppFixture, wait_until
from tests.api.responses_client import RESPONSES
from tests.api.test_when_busy import running, waiting
from tests.clock import CLOCK

from stint.domain.ids import new_id

GATED = "faulty/gated"
"""A model that is silent until the test ends the silence."""


class Keyed(threading.Thread):
    """A POST with an idempotency key, whose stream is read by another thread."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any], key: str) -> None:
        super().__init__(daemon=True)
        self.http, self.path, self.body, self.key = http, path, body, key
        self.begun = threading.Event()
        self.text = ""
        self.replayed = False
        self.start()

    def run(self) -> None:
        headers = {"idempotency-key": self.key}
        with self.http.stream("POST", self.path, json=self.body, headers=headers) as response:
            self.replayed = response.headers.get("idempotent-replayed") == "true"
            for text in response.iter_text():
                self.text += text
                if "data:" in self.text:
                    self.begun.set()

    @property
    def frames(self) -> list[str]:
        """Return the events of the whole stream, without heartbeats."""
        self.join(60)
        return [frame for frame in self.text.replace(": keep-alive\n", "").split("\n\n") if frame]


def post_twice(http: httpx.Client, app_fixture: AppFixture, path: str, body: dict[str, Any]) -> list[Keyed]:
    """Send a request, send it again while it runs, let it end, and send it once more."""
    key = new_id()
    first = Keyed(http, path, body | {"stream": True}, key)
    assert first.begun.wait(60)
    second = Keyed(http, path, body | {"stream": True}, key)
    while not second.begun.wait(0.2):
        CLOCK.move(LEASE / 3)  # the first request renews its leases, so that the second one knows that it runs
    assert first.is_alive()
    app_fixture.faulty.silence.set()
    first.join(60)
    second.join(60)
    return [first, second, Keyed(http, path, body | {"stream": True}, key)]


def test_a_repeated_turn_follows_the_stream_of_the_first(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=GATED)

    first, second, third = post_twice(http, app_fixture, f"{session}/turn", {"messages": [user("Hello")]})

    assert "turn_complete" in first.frames[-1]
    assert second.frames == third.frames == first.frames
    assert [each.replayed for each in (first, second, third)] == [False, True, True]
    assert len(turns_of(http, session)) == 1


def test_a_repeated_response_follows_the_stream_of_the_first(http: httpx.Client, app_fixture: AppFixture) -> None:
    first, second, third = post_twice(http, app_fixture, RESPONSES, {"model": GATED, "input": "Hello"})

    assert "response.completed" in first.frames[-2]
    assert second.frames == third.frames == first.frames
    assert [each.replayed for each in (first, second, third)] == [False, True, True]
    assert len(http.get(RESPONSES).json()["data"]) == 1


def test_a_repeated_resume_follows_the_stream_of_the_first(http: httpx.Client, app_fixture: AppFixture) -> None:
    tool = {"name": "add", "description": "", "parameters": []}
    session = create_session(http, create_agent(http, model="faulty/asking", client_tools=[tool]))
    turn = http.post(f"{session}/turn", json={"messages": [user("Hello")]}).json()
    path, body = f"{session}/turn/{turn['turn_id']}/resume", {"tool_responses": answers_to(turn, "3")}

    first, second, third = post_twice(http, app_fixture, path, body)

    assert "turn_complete" in first.frames[-1]
    assert second.frames == third.frames == first.frames
    assert [each.replayed for each in (first, second, third)] == [False, True, True]
    [ended] = turns_of(http, session)
    assert [step["step_type"] for step in ended["steps"]] == ["inference", "tool_execution", "inference"]


def test_a_repeated_turn_without_a_stream_gets_the_first_ones_document(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http, model=GATED)
    body, key = {"messages": [user("Hello")]}, new_id()
    first = Keyed(http, f"{session}/turn", body, key)
    wait_until(lambda: len(turns_of(http, session)) == 1)
    second = Keyed(http, f"{session}/turn", body, key)
    app_fixture.faulty.silence.set()
    first.join(60)
    second.join(60)

    assert json.loads(second.text) == json.loads(first.text) == turns_of(http, session)[0]


def test_a_repetition_waits_for_a_turn_that_waits(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=GATED)
    busy = running(http, session)
    body = {"messages": [user("two")], "stream": True, "when_busy": "enqueue"}
    key = new_id()
    first = Keyed(http, f"{session}/turn", body, key)
    wait_until(lambda: waiting(app_fixture, session) == 1)
    before = app_fixture.proxy.calls["GetItem"]
    second = Keyed(http, f"{session}/turn", body, key)
    wait_until(lambda: app_fixture.proxy.calls["GetItem"] > before + 2)
    app_fixture.faulty.silence.set()
    busy.join(60)

    assert "turn_complete" in first.frames[-1]
    assert second.frames == first.frames
    assert [turn["input_messages"][0]["content"] for turn in turns_of(http, session)] == ["one", "two"]


@pytest.mark.parametrize("kind", ["chat", "turn", "response"])
def test_a_stream_that_failed_before_anything_was_done_is_run_again(http: httpx.Client, kind: str) -> None:
    model = "faulty/broken-off"
    requests: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
        "chat": lambda: ("/v1/chat/completions", {"model": model, "messages": [user("Hello")]}),
        "turn": lambda: (f"{open_session(http, model=model)}/turn", {"messages": [user("Hello")]}),
        "response": lambda: (RESPONSES, {"model": model, "input": "Hello", "store": False}),
    }
    path, body = requests[kind]()
    key = {"idempotency-key": new_id()}

    failed = [http.post(path, json=body | {"stream": True}, headers=key) for _ in range(2)]

    assert all("the model gave up" in each.text for each in failed)
    assert [each.headers.get("idempotent-replayed") for each in failed] == [None, None]
    if kind == "turn":
        assert len(turns_of(http, path.removesuffix("/turn"))) == 2


@pytest.mark.parametrize("kind", ["turn", "response"])
def test_a_run_that_failed_after_the_first_heartbeat_is_run_again(
    http: httpx.Client, app_fixture: AppFixture, kind: str
) -> None:
    model = "faulty/slow-overload"
    session = open_session(http, model=model) if kind == "turn" else ""
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "turn": (f"{session}/turn", {"messages": [user("Hello")]}),
        "response": (RESPONSES, {"model": model, "input": "Hello"}),
    }
    path, body = requests[kind]
    key = {"idempotency-key": new_id()}

    failed = []
    for _ in range(2):
        app_fixture.faulty.silence.clear()
        failed.append(post_silent(http, app_fixture, path, body, headers=key))

    assert [each.json()["status"] for each in failed] == ["failed", "failed"]
    assert [each.headers.get("idempotent-replayed") for each in failed] == [None, None]
    runs = turns_of(http, session) if kind == "turn" else http.get(RESPONSES).json()["data"]
    assert len(runs) == 2
