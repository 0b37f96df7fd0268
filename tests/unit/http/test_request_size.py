"""The limit of a request's body."""

import json
from typing import Any

import pytest

from stint.http.middleware.bodies import RequestSizeMiddleware
from stint.settings import Settings

MOST = 1000


async def send(*pieces: bytes, method: str = "POST") -> tuple[int, bytes]:
    """Send a body in pieces to an app that returns it, and return the status and the body of the response."""
    incoming: list[Any] = [
        {"type": "http.request", "body": piece, "more_body": index < len(pieces)}
        for index, piece in enumerate(pieces, 1)
    ]
    incoming.append({"type": "http.disconnect"})
    outgoing: list[Any] = []

    async def echo(_: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message["body"]
            more = message["more_body"]
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async def receive() -> Any:
        return incoming.pop(0)

    async def collect(message: Any) -> None:
        outgoing.append(message)

    app = RequestSizeMiddleware(echo, lambda: Settings(max_request_bytes=MOST))
    await app({"type": "http", "method": method, "headers": []}, receive, collect)
    return outgoing[0]["status"], b"".join(message.get("body", b"") for message in outgoing)


@pytest.mark.parametrize("pieces", [(b"",), (b"x" * MOST,), (b"x" * 400, b"y" * 600), (b"a", b"", b"b")])
async def test_a_body_up_to_the_limit_arrives_unchanged(pieces: tuple[bytes, ...]) -> None:
    assert await send(*pieces) == (200, b"".join(pieces))


@pytest.mark.parametrize("pieces", [(b"x" * (MOST + 1),), (b"x" * MOST, b"y"), (b"x" * 600, b"y" * 600, b"z" * 10**6)])
async def test_a_larger_body_is_a_413_that_names_the_limit(pieces: tuple[bytes, ...]) -> None:
    status, body = await send(*pieces)

    assert status == 413
    assert json.loads(body)["error"] == {
        "message": "The body of the request is larger than 1,000 bytes.",
        "type": "invalid_request_error",
        "code": "too_large",
        "param": "",
    }


async def test_other_events_of_a_server_pass() -> None:
    passed: list[str] = []

    async def app(scope: Any, *_: Any) -> None:
        passed.append(scope["type"])

    async def never(*_: Any) -> Any:
        raise AssertionError

    await RequestSizeMiddleware(app, Settings)({"type": "lifespan"}, never, never)

    assert passed == ["lifespan"]
