"""Streams of messages that wait for their session or conversation, over HTTP."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, user
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import RESPONSES, openai_client
from tests.api.test_when_busy import SLOW, Sent, running, status_of

from stint.http import streaming
from stint.services.runs import polling_pauses


class Reader(Sent):
    """A GET whose response is read by another thread. `opened` is set once it has a heartbeat or an event."""

    def __init__(self, http: httpx.Client, path: str) -> None:
        self.opened = threading.Event()
        super().__init__(http, path, {})

    def run(self) -> None:
        with self.http.stream("GET", self.path) as response:
            self.status = response.status_code
            for text in response.iter_text():
                self.text += text
                self.opened.set()

    def wait_for_heartbeat(self) -> None:
        assert self.opened.wait(30)
        assert (self.status, set(self.text.splitlines()) - {""}) == (200, {": keep-alive"})

    @property
    def data(self) -> list[str]:
        self.join(60)
        return [line for line in self.text.splitlines() if line and not line.startswith(":")]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, app_fixture: AppFixture) -> Iterator[None]:
    """Let requests without a stream wait for a moment only, readers look often, and heartbeats come soon."""
    settings = app_fixture.settings.model_copy(update={"heartbeat_seconds": 0.1})
    monkeypatch.setattr(app_fixture, "settings", settings)
    app_fixture.made.clear()
    monkeypatch.setattr(streaming, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(polling_pauses, "LONGEST_SECONDS", 0.25)
    yield
    app_fixture.made.clear()


def lines_of(response: httpx.Response) -> list[str]:
    return [line for line in response.text.splitlines() if line and not line.startswith(":")]


def enqueue_turn(http: httpx.Client, session: str) -> str:
    accepted = http.post(f"{session}/turn", json={"messages": [user("two")], "when_busy": "enqueue"})
    assert accepted.status_code == 202
    return f"{session}/turn/{accepted.json()['turn_id']}"


def test_the_stream_of_a_waiting_turn_follows_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    turn = enqueue_turn(http, session)
    readers = [Reader(http, f"{turn}/events"), Reader(http, f"{turn}/events?starting_after=1")]
    for reader in readers:
        reader.wait_for_heartbeat()

    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"
    app_fixture.run_waiting()

    replayed = lines_of(http.get(f"{turn}/events"))
    assert replayed[0] == "id: 0"
    assert [reader.data for reader in readers] == [replayed, replayed[4:]]


def test_the_stream_of_a_waiting_turn_ends_when_it_is_cancelled(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    turn = enqueue_turn(http, session)
    reader = Reader(http, f"{turn}/events")
    reader.wait_for_heartbeat()

    assert http.post(f"{turn}/cancel").json()["status"] == "cancelled"
    ended = reader.last["error"]
    later = http.get(f"{turn}/events")
    app_fixture.faulty.silence.set()
    first.join(60)

    assert (ended["code"], later.status_code, lines_of(later)) == ("cancelled", 200, reader.data)


def queue_response(http: httpx.Client) -> tuple[Sent, str]:
    """Start a response in a conversation, and return it with the path of another one that waits."""
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    body: dict[str, Any] = {"model": SLOW, "conversation": conversation}
    first = Sent(http, RESPONSES, body | {"input": "one", "stream": True})
    assert first.begun.wait(60)
    queued = http.post(RESPONSES, json=body | {"input": "two", "when_busy": "enqueue"})
    assert queued.status_code == 202
    return first, f"{RESPONSES}/{queued.json()['id']}"


def test_the_stream_of_a_waiting_response_follows_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    first, path = queue_response(http)
    streams = [f"{path}?stream=true", f"{path}?stream=true&starting_after=1"]
    readers = [Reader(http, stream) for stream in streams]
    for reader in readers:
        reader.wait_for_heartbeat()

    app_fixture.faulty.silence.set()
    assert first.last["response"]["status"] == "completed"
    app_fixture.run_waiting()

    replayed = [lines_of(http.get(stream)) for stream in streams]
    assert [reader.data for reader in readers] == replayed
    assert replayed[0][0] == "event: response.created"
    assert (replayed[0][-1], replayed[1]) == ("data: [DONE]", replayed[0][4:])


def test_the_stream_of_a_waiting_response_ends_when_it_is_cancelled(
    http: httpx.Client, app_fixture: AppFixture, server: Any
) -> None:
    first, path = queue_response(http)
    reader = Reader(http, f"{path}?stream=true")
    reader.wait_for_heartbeat()

    cancelled = http.post(f"{path}/cancel").json()
    last = reader.last
    with openai_client(server) as openai:
        later = [event.type for event in openai.responses.retrieve(cancelled["id"], stream=True)]
    app_fixture.faulty.silence.set()
    first.join(60)

    assert (last["type"], last["response"]) == ("response.failed", cancelled)
    assert later == ["response.created", "response.failed"]
    assert reader.data[-1] == "data: [DONE]"
