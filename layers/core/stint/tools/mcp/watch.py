"""Watching of an MCP session's HTTP requests. The `mcp` package drops some failures and would wait forever."""

from collections.abc import AsyncIterator, Callable, Collection

import httpx

from stint.domain.errors import StintError
from stint.tools.mcp.answers import AnswerCheck, ReceiveBudget
from stint.tools.mcp.refusals import McpRequestRefused, Reason, read_reason, stream_of


class Watch(httpx.AsyncBaseTransport):
    """Records the first failure of a request whose method is in `methods`, and calls `stop`.

    Responses that are too large, alone or together, are failures for any method.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, methods: Collection[str], received: ReceiveBudget) -> None:
        self._transport = transport
        self._received = received
        self._methods = methods
        self._posted = False
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
            opening = request.method == "POST" and not self._posted
            # Only the first message decides about the transport, and reading a reason may take a second.
            reason = await read_reason(response) if opening else Reason()
            self.record(McpRequestRefused(request.method, response.status_code, opening=opening, reason=reason))
        self._posted = self._posted or request.method == "POST"
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
