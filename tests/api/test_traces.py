"""Traces of turns and responses: read over HTTP, and sent to a receiver on loopback after the answer."""

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests.api.api_client import WEATHER, assert_error, open_session, resume, say, turn, user
from tests.api.app_fixture import AppFixture, Served, wait_until
from tests.api.responses_client import respond
from tests.api.test_log_lines import lines_of_request
from tests.otlp import Json, names_of, read_attributes, read_trace
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

SECRET = "tvly-caller-secret-42"
PROVIDER_DATA = {"x-llamastack-provider-data": json.dumps({"tavily_search_api_key": SECRET})}
KEY = "Bearer otlp-key-of-the-operator"
HEADERS = "Authorization=Bearer%20otlp-key-of-the-operator"


class Receiver(ScriptedHTTPServer):
    """A receiver of traces, which accepts all."""

    def __init__(self) -> None:
        super().__init__(lambda _: Reply((b"{}",)))

    def wait_for_trace(self) -> Received:
        """Return the next trace, when it has arrived."""
        wait_until(lambda: bool(self.traces))
        return self.traces[0]

    @property
    def traces(self) -> list[Received]:
        return [request for request in self.requests if request.path == "/v1/traces"]


@pytest.fixture
def receiver(server: Served) -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver
        server.settle()  # traces are sent after the answers


@pytest.fixture
def send_to(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that lets the API send traces to a URL, before the first request of a test."""

    def send(url: str, **settings: Any) -> None:
        update = {"otlp_endpoint": url, "service_name": "shop", **settings}
        monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update=update))

    return send


def read(http: httpx.Client, path: str) -> list[Json]:
    """Return the spans of a trace."""
    answered = http.get(path)
    assert answered.status_code == 200, answered.text
    assert answered.headers["content-type"] == "application/json"
    return read_trace(answered.content)


def stream_of(http: httpx.Client, path: str, body: Json) -> str:
    response = http.post(path, json=body | {"stream": True})
    assert response.status_code == 200, response.text
    return response.text


def test_the_trace_of_a_turn_is_read(http: httpx.Client) -> None:
    session = open_session(http, name="Clerk")
    answered = turn(http, session, "Hello")

    root, chat = read(http, f"{session}/turn/{answered['turn_id']}/trace")

    assert [root["name"], chat["name"]] == ["invoke_agent Clerk", "chat scripted/demo"]
    assert read_attributes(root)["gen_ai.conversation.id"] == answered["session_id"]
    assert "Hello" in read_attributes(root)["gen_ai.input.messages"]
    assert "gen_ai.response.time_to_first_chunk" in read_attributes(chat)


def test_the_trace_of_a_response_is_read(http: httpx.Client) -> None:
    answered = respond(http, "Hello")

    root, chat = read(http, f"/v1/responses/{answered['id']}/trace")

    assert [root["name"], chat["name"]] == ["invoke_agent", "chat scripted/demo"]
    assert root["traceId"] == answered["id"].removeprefix("resp_")
    assert read_attributes(root)["gen_ai.response.id"] == answered["id"]
    assert "Hello" in read_attributes(root)["gen_ai.output.messages"]


def test_a_turn_that_waits_for_its_client_has_no_trace_yet(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather")
    path = f"{session}/turn/{paused['turn_id']}"

    early = http.get(f"{path}/trace")
    resume(http, session, paused, "Sunny")

    assert_error(early, 409, "run_not_ended")
    assert "awaiting_input" in early.json()["error"]["message"]
    assert names_of(read(http, f"{path}/trace")) == [
        "invoke_agent",
        "chat scripted/demo",
        "execute_tool get_weather",
        "chat scripted/demo",
    ]


def test_a_queued_response_has_no_trace_yet(http: httpx.Client, app_fixture: AppFixture) -> None:
    queued = respond(http, "Hello", background=True)
    path = f"/v1/responses/{queued['id']}/trace"

    early = http.get(path)
    app_fixture.work_off()

    assert_error(early, 409, "run_not_ended")
    assert names_of(read(http, path)) == ["invoke_agent", "chat scripted/demo"]


def test_a_failed_turn_has_a_trace_with_its_error(http: httpx.Client) -> None:
    session = open_session(http, model="faulty/crash")
    failed = say(http, session, "hi")

    root, *_ = read(http, f"{session}/turn/{http.get(session).json()['turns'][0]['turn_id']}/trace")

    assert failed.status_code == 500
    assert (root["status"]["code"], read_attributes(root)["error.type"]) == (2, failed.json()["error"]["code"])


@pytest.mark.parametrize("stream", [True, False])
def test_the_trace_of_a_turn_is_sent_without_content(
    http: httpx.Client, receiver: Receiver, send_to: Any, stream: bool
) -> None:
    send_to(receiver.url, otlp_headers=SecretStr(f"{HEADERS},x-team=a"))
    session = open_session(http, name="Clerk", instructions="Speak of Zanzibar.")

    answered = say(http, session, "Where is Timbuktu?", stream=stream)

    sent = receiver.wait_for_trace()
    assert (sent.method, sent.path) == ("POST", "/v1/traces")
    assert sent.headers["content-type"] == "application/json"
    assert (sent.headers["authorization"], sent.headers["x-team"]) == (KEY, "a")
    root, chat = read_trace(sent.body)
    assert [root["name"], chat["name"]] == ["invoke_agent Clerk", "chat scripted/demo"]
    assert "Timbuktu" in answered.text
    assert not [word for word in (b"Timbuktu", b"Zanzibar", b"messages") if word in sent.body]


def test_the_trace_of_a_streamed_response_is_sent(http: httpx.Client, receiver: Receiver, send_to: Any) -> None:
    send_to(receiver.url)

    stream_of(http, "/v1/responses", {"model": "scripted/demo", "input": "Where is Timbuktu?"})

    sent = receiver.wait_for_trace()
    assert names_of(read_trace(sent.body)) == ["invoke_agent", "chat scripted/demo"]
    assert b"Timbuktu" not in sent.body


def test_a_response_that_is_not_stored_has_its_trace_sent(http: httpx.Client, receiver: Receiver, send_to: Any) -> None:
    send_to(receiver.url)

    respond(http, "Hello", store=False)

    assert names_of(read_trace(receiver.wait_for_trace().body)) == ["invoke_agent", "chat scripted/demo"]


def test_the_worker_sends_the_trace_of_a_background_response(
    http: httpx.Client, receiver: Receiver, send_to: Any, app_fixture: AppFixture
) -> None:
    send_to(receiver.url)
    queued = respond(http, "Hello", background=True)

    app_fixture.work_off()

    root, _ = read_trace(receiver.wait_for_trace().body)
    assert root["traceId"] == queued["id"].removeprefix("resp_")


def test_a_pause_sends_nothing_and_the_end_sends_the_whole_turn(
    http: httpx.Client, receiver: Receiver, send_to: Any, server: Served
) -> None:
    send_to(receiver.url)
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather")
    server.settle()
    at_pause = receiver.traces

    resume(http, session, paused, "Sunny")

    assert at_pause == []
    assert "execute_tool get_weather" in names_of(read_trace(receiver.wait_for_trace().body))


def test_what_is_sent_with_content_is_redacted(http: httpx.Client, receiver: Receiver, send_to: Any) -> None:
    send_to(receiver.url, traces_content=True, tavily_base_url=f"{receiver.url}/tavily")
    session = open_session(http, name=f"Clerk {SECRET}", toolgroups=["builtin::websearch"])
    body = {"messages": [user(f"brave_search: my key is {SECRET}, and Timbuktu is far.")]}

    response = http.post(f"{session}/turn", json=body, headers=PROVIDER_DATA)

    sent = receiver.wait_for_trace()
    assert response.status_code == 200
    assert "execute_tool brave_search" in names_of(read_trace(sent.body))
    assert SECRET.encode() not in sent.body
    root, *_ = read_trace(sent.body)
    assert "my key is ***, and Timbuktu is far." in read_attributes(root)["gen_ai.input.messages"]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_does_not_wait_for_the_receiver(
    http: httpx.Client, receiver: Receiver, send_to: Any, stream: bool
) -> None:
    send_to(receiver.url, otlp_timeout=10_000)
    gate = threading.Event()
    receiver.script(Reply((b"{}",), before=gate))
    session = open_session(http)

    answered = say(http, session, "Hello", stream=stream)

    receiver.wait_for_trace()
    assert answered.status_code == 200
    assert not gate.is_set()
    gate.set()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=0),
        Reply(status=503),
        Reply(status=307, headers={"Location": "/v1/other"}),
        Reply(before=600.0),
    ],
    ids=["cut", "refused", "redirected", "silent"],
)
def test_a_dead_receiver_loses_the_trace_and_nothing_else(
    http: httpx.Client, receiver: Receiver, send_to: Any, reply: Reply, written: io.StringIO, server: Served
) -> None:
    send_to(receiver.url, otlp_timeout=100, otlp_headers=SecretStr(HEADERS))
    receiver.script(reply)
    session = open_session(http)

    answered = say(http, session, "Hello")

    assert answered.status_code == 200
    lines = lines_of_request(written, server, answered)
    assert [line["message"] for line in lines] == ["A trace was lost", "Request"]
    assert lines[0]["receiver"] == "otlp"
    assert "otlp-key" not in written.getvalue()
    assert turn(http, session, "Again")["status"] == "completed"


def test_nothing_is_sent_without_a_receiver(http: httpx.Client, app_fixture: AppFixture) -> None:
    turn(http, open_session(http), "Hello")

    assert app_fixture.make_services("").turns.traces is None
