import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from stint.http.middleware.bodies import MAX_BUFFERED_BYTES, ResponseSizeMiddleware, ServerErrorMiddleware
from stint.http.middleware.request_logging import trace_id_of

App = Callable[[Scope, Receive, Send], Awaitable[None]]


async def call(app: App, headers: dict[str, str] | None = None, sent: list[Message] | None = None) -> list[Message]:
    messages = [] if sent is None else sent
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        messages.append(message)

    await app({"type": "http", "method": "GET", "path": "/", "headers": raw}, receive, send)
    return messages


def answering(body: bytes, status: int = 200) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": body})

    return app


def body_of(messages: list[Message]) -> Any:
    return json.loads(b"".join(message.get("body", b"") for message in messages))


async def test_a_fault_before_the_first_byte_is_answered() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError("secret")

    messages = await call(ServerErrorMiddleware(broken))

    assert messages[0]["status"] == 500
    assert body_of(messages)["error"]["code"] == "server_error"
    assert "secret" not in str(body_of(messages))


async def test_a_fault_after_the_first_byte_is_raised_for_the_runtime_to_cut_the_answer() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError("secret")

    sent: list[Message] = []
    with pytest.raises(ZeroDivisionError):
        await call(ServerErrorMiddleware(broken), sent=sent)

    assert [message["type"] for message in sent] == ["http.response.start"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * (MAX_BUFFERED_BYTES - 2), 200),
        (b"x" * (MAX_BUFFERED_BYTES - 1), 413),
        (b'"' * (MAX_BUFFERED_BYTES // 2), 413),
        ("é".encode() * (MAX_BUFFERED_BYTES // 6 + 1), 413),
        (b"", 200),
    ],
)
async def test_answers_are_measured_as_they_travel(body: bytes, status: int) -> None:
    messages = await call(ResponseSizeMiddleware(answering(body)))

    assert messages[0]["status"] == status
    assert status == 413 or messages[1]["body"] == body


def test_a_trace_id_is_that_of_xray_or_a_new_one() -> None:
    header = (b"x-amzn-trace-id", b"Self=1-1-1;Root=1-67891233-abcdef012345678912345678;Parent=463ac35c9f6413ad")

    traced = trace_id_of({"type": "http", "headers": [header]})
    others = {trace_id_of({"type": "http", "headers": []}) for _ in range(2)}

    assert traced == "67891233abcdef012345678912345678"
    assert [len(other) for other in others] == [32, 32]
