"""Watching of an MCP session's HTTP requests. The `mcp` package drops some failures and would wait forever."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

import httpx

from stint.domain.errors import StintError
from stint.domain.json_text import parse_json
from stint.tools.mcp.answers import AnswerCheck, ReceiveBudget

MAX_REASON_BYTES = 64_000
REASON_SECONDS = 1.0
"""Maximum seconds to wait for the reason of a refusal."""


class McpRequestRefused(Exception):
    """The server answered a request with an error. `opening`: it was the first request of the session.

    `reason` is the message of the JSON-RPC error in the response; empty without one.
    """

    def __init__(self, method: str, status: int, *, opening: bool, reason: str = "") -> None:
        super().__init__(f"{status} to {method}")
        self.method = method
        self.status = status
        self.opening = opening
        self.reason = reason


class Watch(httpx.AsyncBaseTransport):
    """Records the first failure of a request whose method is in `methods`, and calls `stop`.

    Responses that are too large, alone or together, are failures for any method.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, methods: Collection[str], received: ReceiveBudget) -> None:
        self._transport = transport
        self._received = received
        self._methods = methods
        self._answered = 0
        self.failure: Exception | None = None
        self.stop: Callable[[], None] = lambda: None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        watched = request.method in self._methods
        try:
            response = await self._transport.handle_async_request(request)
        except (httpx.HTTPError, StintError) as error:
            if watched:
                self.record(error)
            raise
        if watched and response.is_error:
            opening = self._answered == 0
            reason = await read_reason(response) if opening else ""
            self.record(McpRequestRefused(request.method, response.status_code, opening=opening, reason=reason))
        self._answered += 1
        check = AnswerCheck(self._received, response.headers.get("content-type", ""))
        response.stream = WatchedBody(stream_of(response), self, check, watched=watched)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()

    def record(self, failure: Exception) -> None:
        """Record a failure, unless there is an earlier one."""
        if self.failure is None:
            self.failure = failure
            self.stop()


def stream_of(response: httpx.Response) -> httpx.AsyncByteStream:
    """Return the stream of a response of an asynchronous transport."""
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - an asynchronous transport's is
    return response.stream


async def read_reason(response: httpx.Response) -> str:
    """Return the message of the JSON-RPC error in a response, which the server must send at once; empty without one.

    The body is read, and kept for the next reader.
    """
    if not response.headers.get("content-type", "").lower().startswith("application/json"):
        return ""
    body = bytearray()
    try:
        async with asyncio.timeout(REASON_SECONDS):
            async for chunk in stream_of(response):
                body += chunk
                if len(body) > MAX_REASON_BYTES:
                    return ""
        message = parse_json(bytes(body))
    except (TimeoutError, httpx.HTTPError, StintError, ValueError):
        return ""
    finally:
        await response.aclose()
        response.stream = httpx.ByteStream(bytes(body))
    error = message.get("error") if isinstance(message, dict) else None
    reason = error.get("message") if isinstance(error, dict) else None
    return reason if isinstance(reason, str) else ""


class WatchedBody(httpx.AsyncByteStream):
    """A body whose size is checked and whose failure is recorded."""

    def __init__(self, body: httpx.AsyncByteStream, watch: Watch, check: AnswerCheck, *, watched: bool) -> None:
        self._body = body
        self._watch = watch
        self._check = check
        self._watched = watched

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._body:
                self._check.feed(chunk)
                yield chunk
            self._check.finish()
        except (httpx.HTTPError, StintError) as error:
            if self._watched or isinstance(error, StintError):
                self._watch.record(error)
            raise

    async def aclose(self) -> None:
        await self._body.aclose()
