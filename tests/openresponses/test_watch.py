"""Exchanges are seen wherever they are made, and what is wrong with them is kept."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from tests.openresponses.asgi import Watched
from tests.openresponses.samples import CALL, MESSAGE, encode, response, stream
from tests.openresponses.watch import Exchange, take_complaints
from tests.openresponses.wire import Tap

PAGE: dict[str, Any] = {"object": "list", "first_id": None, "last_id": None, "has_more": False, "data": []}
TOLD = {"error": {"message": "No.", "type": "not_found", "code": "not_found", "param": None}}


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("POST", "/v1/responses", 200, response()),
        ("GET", "/v1/openai/v1/responses?limit=1", 200, PAGE),
        ("GET", "/prod/v1/responses/resp_1", 200, response("in_progress", [])),
        ("GET", "/v1/responses/resp_1", 404, TOLD),
        ("DELETE", "/v1/responses/resp_1", 200, {"id": "resp_1", "object": "response", "deleted": True}),
        ("GET", "/v1/responses/resp_1/input_items", 200, PAGE),
        ("POST", "/v1/responses/resp_1/cancel", 200, response("cancelled", [])),
        ("POST", "/v1/responses/resp_1/heartbeat", 200, {"interval_seconds": 5, "timeout_seconds": 15}),
        ("POST", "/v1/responses/input_tokens", 200, {"object": "response.input_tokens", "input_tokens": 1}),
        ("GET", "/v1/conversations/conv_1/items/msg_1", 200, MESSAGE),
        ("GET", "/v1/conversations/conv_1/items", 200, PAGE | {"data": [CALL], "first_id": "fc_1", "last_id": "fc_1"}),
    ],
)
def test_a_good_answer_passes_and_another_does_not(method: str, target: str, status: int, body: dict[str, Any]) -> None:
    finish(method, target, status, body)
    good = take_complaints()
    finish(method, target, status, {"id": "x"})
    bad = take_complaints()

    assert good == []
    assert len(bad) == 1
    assert bad[0].startswith(f"{method} ")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"model": "m", "input": [{"type": "message", "role": "user", "content": "Hi"}]}, ""),
        ({"model": "m", "input": [{"type": "message", "role": "judge", "content": "Hi"}]}, "CreateResponseBody"),
        ({"model": "m", "input": [], "max_output_tokens": 3}, "max_output_tokens"),
        ({"model": "m", "input": [], "top_k": 3}, "has no ['top_k']"),
        ({"model": "m", "input": [{"type": "item_reference", "id": "a"}] * 2}, "more than once"),
    ],
)
def test_a_request_of_stint_is_checked_where_that_is_asked_for(body: dict[str, Any], complaint: str) -> None:
    exchange = Exchange.of("POST", "/v1/responses")
    assert exchange is not None
    exchange.request += json.dumps(body).encode()
    exchange.check_request()

    found = take_complaints()
    assert [complaint in each for each in found] == [True] * bool(complaint)


def test_other_apis_are_not_looked_at() -> None:
    assert Exchange.of("GET", "/v1/agents") is None
    assert Exchange.of("OPTIONS", "/v1/responses") is None


def test_an_unknown_operation_is_wrong_unless_it_is_refused() -> None:
    finish("PUT", "/v1/responses", 404, TOLD)
    refused = take_complaints()
    finish("PUT", "/v1/responses", 200, response())

    assert refused == []
    assert "No such operation" in take_complaints()[0]


async def test_around_an_app_each_event_is_one_write() -> None:
    body = encode(stream())
    events = body.replace(b"\n\n", b"\n\n\0").split(b"\0")[:-1]
    torn = [part for event in events for part in (event[:-1], b"\n")]

    await stream_through_app(events)
    whole = take_complaints()
    await stream_through_app(torn)

    assert whole == []
    assert all("in pieces" in each for each in take_complaints())


async def stream_through_app(writes: list[bytes]) -> None:
    async def app(_: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for write in writes:
            await send({"type": "http.response.body", "body": write, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    transport = httpx.ASGITransport(app=Watched(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
        assert (await client.post("/v1/responses", json={})).content == b"".join(writes)


@pytest.fixture
def tap() -> Iterator[Tap]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), AnswerHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    tap = Tap(server.server_port)
    yield tap
    tap.close()
    server.shutdown()
    server.server_close()
    thread.join()


class AnswerHandler(BaseHTTPRequestHandler):
    """AnswerHandler with what the request's body says, and notes what came of a stream."""

    protocol_version = "HTTP/1.1"
    hung_up = threading.Event()

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        events = json.loads(self.rfile.read(length))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for event in encode(events).replace(b"\n\n", b"\n\n\0").split(b"\0"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            while self.path.endswith("?forever"):
                self.wfile.write(b"8\r\n: ping\n\n\r\n")
        except OSError:
            self.hung_up.set()
            self.close_connection = True

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        return


def test_between_client_and_server_every_exchange_of_a_connection_is_seen(tap: Tap) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{tap.port}", trust_env=False, timeout=120) as client:
        answer = client.post("/v1/responses", json=stream())
        good = take_complaints()
        client.post("/v1/responses", json=stream()[:-1])
        bad = take_complaints()
        client.post("/v1/other", json=stream()[:-1])

    assert answer.content == encode(stream())
    assert good == []
    assert "before the end" in bad[0]
    assert take_complaints() == []


def test_a_client_that_hangs_up_is_gone_for_the_server_too(tap: Tap) -> None:
    with (
        httpx.Client(base_url=f"http://127.0.0.1:{tap.port}", trust_env=False, timeout=120) as client,
        client.stream("POST", "/v1/responses?forever", json=stream()) as answer,
    ):
        next(answer.iter_bytes())

    assert AnswerHandler.hung_up.wait(10)
    assert take_complaints() == []


def finish(method: str, target: str, status: int, body: dict[str, Any]) -> None:
    exchange = Exchange.of(method, target)
    assert exchange is not None
    exchange.status = status
    exchange.media_type = "application/json"
    exchange.body += json.dumps(body).encode()
    exchange.finish()
