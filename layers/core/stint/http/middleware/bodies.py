"""Middleware that replaces, limits or shortens bodies. Streams are not buffered.

Each of them holds as little as it can:

    middleware        holds                    because
    RequestSize       the whole request        Lambda has it in memory already; nothing parses what is refused
    ResponseSize      the whole response       it is for buffered functions, of which Lambda sends nothing before the
                                               end, and for a response that is too large only an error of its own
    ServerError       nothing                  it can replace a response until its first byte. In a buffered function
                                               that is until its end, because it is outside of ResponseSize
    DoneMarker        nothing                  the marker is a write of its own
"""

import logging
from collections import deque
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.domain.errors import TooLarge, Unexpected
from stint.domain.paging import carried_size
from stint.http.errors import respond
from stint.http.sse import DONE
from stint.settings import Settings

logger = logging.getLogger(__name__)

ReadSettings = Callable[[], Settings]

CLIENT_VERSION_HEADER = "x-llamastack-client-version"
CLIENT_NAME = "LlamaStackClient/"
MAX_BUFFERED_BYTES = 5_500_000


class DoneMarkerMiddleware:
    """Remove the `[DONE]` at the end of a stream for Llama Stack's clients.

    Their older versions, Python and Node, parse the data of each event as JSON and fail. Llama Stack's own streams have
    no such marker.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_llama_stack_client(Headers(scope=scope)):
            return await self.app(scope, receive, send)

        async def send_unmarked(message: Message) -> None:
            if message.get("body") != DONE:
                await send(message)

        return await self.app(scope, receive, send_unmarked)


def is_llama_stack_client(headers: Headers) -> bool:
    """Return whether a Llama Stack client sent these headers. Its Node version has no header of its own."""
    return CLIENT_VERSION_HEADER in headers or CLIENT_NAME in headers.get("user-agent", "")


class ServerErrorMiddleware:
    """Return an unexpected exception in the common error body. Its trace is only in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, send_noting_start)
        except Exception as error:
            if started:
                raise
            logger.error("Unexpected error", exc_info=error)
            await respond(Unexpected())(scope, receive, send)


class RequestSizeMiddleware:
    """Refuse a request whose body is larger than STINT_MAX_REQUEST_BYTES, before anything parses it.

    Lambda has the whole body before the function runs, so the limit bounds what is made of it, not the transfer.
    """

    def __init__(self, app: ASGIApp, read_settings: ReadSettings) -> None:
        self.app = app
        self.read_settings = read_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        most = self.read_settings().max_request_bytes
        body = await read_up_to(most, receive)
        if body is None:
            return await respond(TooLarge(f"The body of the request is larger than {most:,} bytes."))(
                scope, receive, send
            )

        async def receive_again() -> Message:
            return body.popleft() if body else await receive()

        return await self.app(scope, receive_again, send)


async def read_up_to(most: int, receive: Receive) -> deque[Message] | None:
    """Return the messages with the body, one in Lambda, or None if it is larger than `most` bytes."""
    messages: deque[Message] = deque()
    size, more = 0, True
    while more:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        if size > most:
            return None
        more = message.get("more_body", False)
    return messages


class ResponseSizeMiddleware:
    """Keep the responses of a buffered function under Lambda's 6 MB.

    The body is a string inside JSON, so quotes and backslashes count twice:
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self.app(scope, receive, hold)
        size = carried_size(b"".join(message.get("body", b"") for message in held).decode())
        if size > MAX_BUFFERED_BYTES:
            advice = "Request less at a time with start_index and limit."
            error = TooLarge(f"The response has {size} bytes; at most {MAX_BUFFERED_BYTES} are possible. {advice}")
            await respond(error)(scope, receive, send)
            return
        for message in held:
            await send(message)
