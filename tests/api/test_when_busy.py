"""Requests to a session or conversation in use over HTTP: rejected, enqueued, or interrupting."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import create_agent, create_session, open_session, user
from tests.api.app_fixture import AppFixture, Served, run_in_thread, wait_until
from tests.api.responses_client import RESPONSES, assert_refused, openai_client
from tests.services.turns.test_turn_tools import FakeTools

from stint.domain.inference import ToolSignature
from stint.domain.stops import stop_name
from stint.http import streaming
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

KIND = "remote-execution"
SLOW = "faulty/gated"
"""A model that is silent until the test ends the silence."""


class Sent(threading.Thread):
    """A request whose response is read by another thread."""

    def __init__(self, http: httpx.Client, path: str, body: dict[str, Any], method: str = "POST") -> None:
        super().__init__(daemon=True)
        self.http, self.path, self.body, self.method = http, path, body, method
        self.begun = threading.Event()
        self.text = ""
        self.status = 0
        self.start()

    def run(self) -> None:
        with self.http.stream(self.method, self.path, json=self.body) as response:
            self.status = response.status_code
            for text in response.iter_text():
                self.text += text
                if "data:" in self.text:
                    self.begun.set()

    @property
    def last(self) -> dict[str, Any]:
        """Return the data of the last event."""
        self.join(60)
        found: dict[str, Any] = json.loads(self.events[-1])
        return found

    @property
    def events(self) -> list[str]:
        return [line[6:] for line in self.text.splitlines() if line.startswith("data: {")]


def say(http: httpx.Client, session: str, text: str, **body: Any) -> Sent:
    return Sent(http, f"{session}/turn", {"messages": [user(text)], "stream": True} | body)


def running(http: httpx.Client, session: str, text: str = "one", **body: Any) -> Sent:
    """Start a turn of the silent model, and wait for its first event."""
    sent = say(http, session, text, **body)
    assert sent.begun.wait(60)
    return sent


def inputs(http: httpx.Client, session: str) -> list[tuple[str, str]]:
    """Return the text and the status of each turn."""
    turns = http.get(session).json()["turns"]
    return [(turn["input_messages"][0]["content"], turn["status"]) for turn in turns]


def waiting(app_fixture: AppFixture, session: str) -> int:
    """Return how many requests wait for a session."""
    _, _, _, agent_id, _, session_id = session.split("/")
    return len(run_in_thread(app_fixture.store.session_line(app_fixture.tenant, agent_id, session_id).read()))


def waiting_in(app_fixture: AppFixture, conversation_id: str) -> int:
    """Return how many requests wait for a conversation."""
    return len(run_in_thread(app_fixture.store.conversation_line(app_fixture.tenant, conversation_id).read()))


def status_of(event: dict[str, Any]) -> str:
    return str(event["event"]["payload"]["turn"]["status"])


def test_a_session_in_use_rejects_by_default(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)

    assert_refused(http.post(f"{session}/turn", json={"messages": [user("two")]}), 409, "session_locked")
    rejected = http.post(f"{session}/turn", json={"messages": [user("two")], "when_busy": "reject"})
    assert_refused(rejected, 409, "session_locked")

    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"


def test_an_interrupting_turn_cancels_the_running_one_and_starts(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)

    second = say(http, session, "two", when_busy="interrupt")
    assert status_of(first.last) == "cancelled"
    assert second.begun.wait(60)
    app_fixture.faulty.silence.set()

    assert status_of(second.last) == "completed"
    assert inputs(http, session) == [("one", "cancelled"), ("two", "completed")]


def test_enqueued_turns_run_in_order_of_acceptance(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    sent = [running(http, session)]
    for text in ("two", "three"):
        before = waiting(app_fixture, session)
        sent.append(say(http, session, text, when_busy="enqueue"))
        wait_until(lambda before=before: waiting(app_fixture, session) > before)  # type: ignore[misc]

    app_fixture.faulty.silence.set()

    assert [status_of(each.last) for each in sent] == ["completed"] * 3
    assert inputs(http, session) == [("one", "completed"), ("two", "completed"), ("three", "completed")]
    assert waiting(app_fixture, session) == 0


def test_an_agent_says_what_its_sessions_do(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, model=SLOW, when_busy="interrupt")
    session = create_session(http, agent)
    first = running(http, session)

    rejected = http.post(f"{session}/turn", json={"messages": [user("two")], "when_busy": "reject"})
    second = say(http, session, "three")

    assert_refused(rejected, 409, "session_locked")
    assert status_of(first.last) == "cancelled"
    app_fixture.faulty.silence.set()
    assert status_of(second.last) == "completed"
    assert http.get(f"/v1/agents/{agent}").json()["agent_config"]["when_busy"] == "interrupt"


def test_an_enqueued_turn_without_a_stream_is_one_document(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    second = Sent(http, f"{session}/turn", {"messages": [user("two")], "when_busy": "enqueue"})
    wait_until(lambda: waiting(app_fixture, session) == 1)

    app_fixture.faulty.silence.set()
    second.join(60)

    assert status_of(first.last) == "completed"
    assert (second.status, json.loads(second.text)["status"]) == (200, "completed")


@pytest.mark.parametrize("mode", ["enqueue", "interrupt"])
def test_a_response_of_a_conversation_in_use(http: httpx.Client, app_fixture: AppFixture, mode: str) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    body = {"model": SLOW, "conversation": conversation, "stream": True}
    first = Sent(http, RESPONSES, body | {"input": "one"})
    assert first.begun.wait(60)

    second = Sent(http, RESPONSES, body | {"input": "two", "when_busy": mode})
    if mode == "enqueue":
        wait_until(lambda: waiting_in(app_fixture, conversation) == 1)
        app_fixture.faulty.silence.set()
    ended = first.last["response"]["status"]
    app_fixture.faulty.silence.set()

    assert ended == ("completed" if mode == "enqueue" else "cancelled")
    assert second.last["response"]["status"] == "completed"
    items = http.get(f"/v1/conversations/{conversation}/items?order=asc").json()["data"]
    said = [item["content"][0]["text"] for item in items if item["role"] == "user"]
    assert said == ["one", "two"]


def test_the_clients_send_when_busy_as_an_extra_field(
    client: LlamaStackClient, server: Served, http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http, model=SLOW)
    _, _, _, agent_id, _, session_id = session.split("/")
    first = running(http, session)
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    other = Sent(http, RESPONSES, {"model": SLOW, "conversation": conversation, "stream": True, "input": "one"})
    assert other.begun.wait(60)
    interrupt = {"when_busy": "interrupt"}

    chunks = client.agents.turn.create(
        session_id=session_id,
        agent_id=agent_id,
        messages=[{"role": "user", "content": "two"}],
        stream=True,
        extra_body=interrupt,
    )
    assert status_of(first.last) == "cancelled"
    app_fixture.faulty.silence.set()
    assert [chunk.event.payload.event_type for chunk in chunks][-1] == "turn_complete"

    app_fixture.faulty.silence.clear()
    assert other.last["response"]["status"] == "completed"
    with openai_client(server) as openai:
        response = openai.responses.create(
            model="scripted/demo", input="say: Hi", conversation=conversation, extra_body=interrupt
        )
    assert response.output_text == "Hi"


def test_a_background_response_does_not_wait(http: httpx.Client) -> None:
    body = {"model": SLOW, "input": "Hi", "background": True, "when_busy": "enqueue"}

    assert_refused(http.post(RESPONSES, json=body), 400, "invalid_request")
    unknown = http.post(RESPONSES, json=body | {"when_busy": "later", "background": False})
    assert_refused(unknown, 400, "invalid_request")


class AddToolProvider(FakeTools):
    """A provider whose toolgroups have the tool `add`."""

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature]:
        return [ToolSignature("add", "", {"type": "object"})]


@pytest.fixture
def tools(app_fixture: AppFixture) -> Iterator[FakeTools]:
    """Return the provider of the toolgroups that a test registers."""
    workshop = AddToolProvider()
    app_fixture.tool_providers = {KIND: workshop}
    app_fixture.made.clear()
    yield workshop
    app_fixture.tool_providers = None
    app_fixture.made.clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests without a stream wait for a moment only."""
    monkeypatch.setattr(streaming, "SILENT_SECONDS", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_turn_that_waits_too_long_is_accepted_and_run_later(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)

    accepted = http.post(f"{session}/turn", json={"messages": [user("two")], "when_busy": "enqueue"})
    turn_id = accepted.json()["turn_id"]
    found = http.get(f"{session}/turn/{turn_id}").json()
    app_fixture.run_waiting()  # the session is still in use
    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"
    app_fixture.run_waiting()

    assert (accepted.status_code, accepted.json()["status"], found) == (202, "in_progress", accepted.json())
    assert inputs(http, session) == [("one", "completed"), ("two", "completed")]
    assert http.get(f"{session}/turn/{turn_id}").json()["status"] == "completed"
    assert app_fixture.queue.waiting == []


@pytest.mark.usefixtures("impatient")
def test_a_response_that_waits_too_long_is_queued_and_run_later(
    http: httpx.Client, app_fixture: AppFixture, server: Served
) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    body = {"model": SLOW, "conversation": conversation, "stream": True}
    first = Sent(http, RESPONSES, body | {"input": "one"})
    assert first.begun.wait(60)

    with openai_client(server) as openai:
        extra: dict[str, Any] = {"conversation": conversation, "extra_body": {"when_busy": "enqueue"}}
        queued = openai.responses.create(model="scripted/demo", input="two", **extra)
        assert (queued.status, openai.responses.retrieve(queued.id).status) == ("queued", "queued")
        cancelled = openai.responses.create(model="scripted/demo", input="three", **extra)
        assert openai.responses.cancel(cancelled.id).status == "cancelled"
        app_fixture.faulty.silence.set()
        assert first.last["response"]["status"] == "completed"
        app_fixture.run_waiting()

        assert openai.responses.retrieve(queued.id).output_text.endswith("two")
        assert openai.responses.retrieve(cancelled.id).status == "cancelled"
    items = http.get(f"/v1/conversations/{conversation}/items?order=asc").json()["data"]
    assert [item["content"][0]["text"] for item in items if item["role"] == "user"] == ["one", "two"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("headers", [{"Idempotency-Key": "k1"}, {"x-stainless-retry-count": "1"}])
def test_a_retry_of_a_waiting_request_finds_its_message(
    http: httpx.Client, app_fixture: AppFixture, headers: dict[str, str]
) -> None:
    session = open_session(http, model=SLOW)
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    first = running(http, session)
    response = {"model": SLOW, "conversation": conversation, "input": "two"}
    other = Sent(http, RESPONSES, response | {"stream": True})
    assert other.begun.wait(60)
    turn = f"{session}/turn", {"messages": [user("two")], "when_busy": "enqueue"}
    requests = [turn, (RESPONSES, response | {"when_busy": "enqueue"})]
    key = {name: value for name, value in headers.items() if name == "Idempotency-Key"}

    answers = [http.post(path, json=body, headers=key) for path, body in requests]
    again = [http.post(path, json=body, headers=headers) for path, body in requests]

    assert {each.status_code for each in answers + again} == {202}
    assert [each.json() for each in again] == [each.json() for each in answers]
    assert (waiting(app_fixture, session), waiting_in(app_fixture, conversation)) == (1, 1)
    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"
    assert other.last["response"]["status"] == "completed"


@pytest.mark.usefixtures("impatient")
def test_a_message_of_a_stopped_session_is_not_run(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model=SLOW)
    first = running(http, session)
    accepted = http.post(f"{session}/turn", json={"messages": [user("two")], "when_busy": "enqueue"}).json()
    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"

    _, _, _, _, _, session_id = session.split("/")
    name = stop_name("session", session_id)
    run_in_thread(app_fixture.store.stops.add(app_fixture.tenant, name, int(time.time())))
    app_fixture.run_waiting()

    found = http.get(f"{session}/turn/{accepted['turn_id']}").json()
    assert (found["status"], found["error"]["code"]) == ("failed", "stopped")
    assert inputs(http, session) == [("one", "completed")]


def test_a_merged_message_gets_the_stream_of_the_running_turn(
    client: LlamaStackClient, http: httpx.Client, app_fixture: AppFixture, tools: FakeTools
) -> None:
    begun, gate = threading.Event(), threading.Event()

    async def act(_: Invocation) -> ToolOutcome:
        begun.set()
        await asyncio.to_thread(gate.wait, 60)
        return ToolOutcome("3")

    tools.act = act
    http.post(
        "/v1/toolgroups", json={"toolgroup_id": "math", "provider_id": KIND, "args": {"tools": [{"name": "add"}]}}
    )
    session = open_session(http, model="scripted/demo", toolgroups=["math"])
    _, _, _, agent_id, _, session_id = session.split("/")
    first = say(http, session, "call add")
    assert begun.wait(60)

    merged = Sent(http, f"{session}/turn", {"messages": [user("and two")], "stream": True, "when_busy": "merge"})
    wait_until(lambda: waiting(app_fixture, session) == 1)
    gate.set()

    turn = first.last["event"]["payload"]["turn"]
    assert merged.last["event"]["payload"]["turn"] == turn
    assert merged.events == first.events
    assert [each["content"] for each in turn["input_messages"]] == ["call add", "and two"]
    read = client.agents.turn.retrieve(turn["turn_id"], agent_id=agent_id, session_id=session_id)
    assert [each.content for each in read.input_messages] == ["call add", "and two"]


def test_the_id_of_a_merged_message_leads_to_its_turn(
    http: httpx.Client, app_fixture: AppFixture, tools: FakeTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()

    async def act(_: Invocation) -> ToolOutcome:
        begun.set()
        await asyncio.to_thread(gate.wait, 60)
        return ToolOutcome("3")

    tools.act = act
    http.post(
        "/v1/toolgroups", json={"toolgroup_id": "math", "provider_id": KIND, "args": {"tools": [{"name": "add"}]}}
    )
    session = open_session(http, model="scripted/demo", toolgroups=["math"], client_tools=[{"name": "ask"}])
    first = say(http, session, "call add")
    assert begun.wait(60)
    with monkeypatch.context() as hurried:
        hurried.setattr(streaming, "SILENT_SECONDS", 0.1)
        body = {"messages": [user("call ask")], "when_busy": "merge"}
        own = f"{session}/turn/{http.post(f'{session}/turn', json=body).json()['turn_id']}"
    waiting_reader = Sent(http, f"{own}/events", {}, "GET")
    gate.set()
    turn = first.last["event"]["payload"]["turn"]
    [call] = turn["output_message"]["tool_calls"]

    waiting_reader.join(60)
    followed = http.get(f"{own}/events").text
    step = http.get(f"{own}/step/{turn['steps'][0]['step_id']}")
    answer = {"call_id": call["call_id"], "tool_name": "ask", "content": "yes"}
    resumed = http.post(f"{own}/resume", json={"tool_responses": [answer]})
    again = http.post(f"{own}/resume", json={"tool_responses": [answer]})
    refused = http.post(f"{own}/resume", json={"tool_responses": [answer | {"content": "no"}]})

    assert http.get(own).json()["turn_id"] == turn["turn_id"]
    assert waiting_reader.events == first.events
    assert [line[6:] for line in followed.splitlines() if line.startswith("data: {")] == first.events
    assert step.status_code == 200
    assert (resumed.json()["status"], resumed.json()["turn_id"]) == ("completed", turn["turn_id"])
    assert again.json() == resumed.json()
    assert_refused(refused, 409, "turn_not_awaiting_input")
    assert http.post(f"{own}/heartbeat").status_code == 200
    assert http.post(f"{own}/cancel").json() == resumed.json()
