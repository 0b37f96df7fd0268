"""Middleware that replaces or shortens bodies. Streams are not buffered."""

import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.domain.errors import TooLarge, Unexpected
from stint.domain.paging import carried_size
from stint.http.errors import respond
from stint.http.sse import DONE

logger = logging.getLogger(__name__)

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
