"""Runs that end with their client's heartbeats, sent with both clients over HTTP."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture, Served, wait_until
from tests.api.responses_client import RESPONSES, UNKNOWN, assert_refused, openai_client
from tests.api.test_when_busy import running, say, status_of, waiting
from tests.clock import CLOCK
from tests.services.signal_reads import SignalReads, counting_reads

from stint.domain.ids import new_id
from stint.domain.run_signals import HEARTBEAT_SECONDS, HEARTBEAT_TIMEOUT_SECONDS
from stint.spending.stop_monitor import WATCH_SECONDS

GATED = "faulty/gated"
"""A model that is silent until the test ends the silence."""

CANCEL = {"on_disconnect": "cancel"}
RECEIVED = {"interval_seconds": HEARTBEAT_SECONDS, "timeout_seconds": HEARTBEAT_TIMEOUT_SECONDS}


@dataclass
class ServerTime:
    """The time of the server, second by second, each with a read of the signals to its runs."""

    http: httpx.Client
    reads: SignalReads

    def let_pass(self, seconds: int) -> None:
        for _ in range(seconds):
            before = self.reads.count
            CLOCK.move(WATCH_SECONDS)
            self.http.get("/v1/health")  # wakes the server's event loop, whose timer is due
            wait_until(lambda before=before: self.reads.count > before)  # type: ignore[misc]

    def fall_silent(self, send_heartbeat: Callable[[], Any]) -> None:
        """Send heartbeats for longer than a run goes on without them, and then none until it ends."""
        for _ in range(4):
            assert send_heartbeat() == RECEIVED
            self.let_pass(HEARTBEAT_SECONDS)
        self.let_pass(HEARTBEAT_TIMEOUT_SECONDS - HEARTBEAT_SECONDS + 1)


@pytest.fixture
def server_time(http: httpx.Client) -> Iterator[ServerTime]:
    with counting_reads() as reads:
        yield ServerTime(http, reads)


def test_a_turn_ends_without_the_heartbeats_of_its_llama_stack_client(
    client: LlamaStackClient, http: httpx.Client, server_time: ServerTime
) -> None:
    session = open_session(http, model=GATED)
    _, _, _, agent_id, _, session_id = session.split("/")
    chunks = iter(
        client.agents.turn.create(
            session_id=session_id,
            agent_id=agent_id,
            messages=[{"role": "user", "content": "Hello"}],
            stream=True,
            extra_body=CANCEL,
        )
    )
    started: Any = next(chunks).event.payload

    server_time.fall_silent(lambda: client.post(f"{session}/turn/{started.turn_id}/heartbeat", cast_to=object))

    [*_, last] = chunks
    assert last.event.payload.event_type == "turn_complete"
    turn = http.get(f"{session}/turn/{started.turn_id}").json()
    assert (turn["status"], turn["error"]) == ("cancelled", None)


def test_a_response_ends_without_the_heartbeats_of_its_openai_client(
    server: Served, http: httpx.Client, server_time: ServerTime
) -> None:
    with openai_client(server) as openai:
        events = openai.responses.create(model=GATED, input="Hello", stream=True, extra_body=CANCEL)
        created: Any = next(events)
        place = f"/responses/{created.response.id}"

        server_time.fall_silent(lambda: openai.post(f"{place}/heartbeat", cast_to=object))

        [*_, last] = events
    assert last.type == "response.failed"
    assert (last.response.status, http.get(f"/v1{place}").json()["status"]) == ("cancelled", "cancelled")


def test_an_enqueued_turn_waits_for_its_own_heartbeats(
    http: httpx.Client, app_fixture: AppFixture, server_time: ServerTime
) -> None:
    session = open_session(http, model=GATED)
    first = running(http, session, **CANCEL)
    [turn] = http.get(session).json()["turns"]
    assert http.post(f"{session}/turn/{turn['turn_id']}/heartbeat").json() == RECEIVED
    second = say(http, session, "two", when_busy="enqueue", **CANCEL)
    wait_until(lambda: waiting(app_fixture, session) == 1)

    server_time.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 1)
    assert status_of(first.last) == "cancelled"
    assert second.begun.wait(60)
    server_time.let_pass(HEARTBEAT_TIMEOUT_SECONDS + 2)
    app_fixture.faulty.silence.set()

    assert status_of(second.last) == "completed"


def test_heartbeats_of_what_is_not_there_and_other_values(http: httpx.Client) -> None:
    session = open_session(http)

    assert_refused(http.post(f"{session}/turn/{new_id()}/heartbeat"), 404, "turn_not_found")
    assert_refused(http.post(f"{RESPONSES}/{UNKNOWN}/heartbeat"), 404, "response_not_found")
    body = {"model": GATED, "input": "Hi"}
    for refused in ({"on_disconnect": "stop"}, CANCEL | {"store": False}, CANCEL | {"background": True}):
        assert_refused(http.post(RESPONSES, json=body | refused), 400, "invalid_request")
