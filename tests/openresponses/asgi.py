"""Check of the exchanges of an ASGI app."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tests.openresponses.watch import Exchange

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Watched:
    """An ASGI middleware that checks an app's responses against the contract."""

    def __init__(self, app: Callable[[Message, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        query = scope.get("query_string", b"").decode()
        exchange = Exchange.of(scope.get("method", ""), f"{scope.get('path', '')}?{query}")
        if exchange is None:
            await self.app(scope, receive, send)
            return
        exchange.hear_headers(scope.get("headers", ()))
        over = False

        async def look(message: Message) -> None:
            nonlocal over
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                headers = {name.lower(): value for name, value in message["headers"]}
                exchange.media_type = headers.get(b"content-type", b"").decode().split(";")[0]
            elif message["type"] == "http.response.body":
                _look_at_write(exchange, message.get("body", b""))
                if not message.get("more_body", False):
                    over = True
                    exchange.finish()
            await send(message)

        try:
            await self.app(scope, receive, look)
        finally:
            if not over:
                exchange.finish(whole=False)


def _look_at_write(exchange: Exchange, chunk: bytes) -> None:
    exchange.body += chunk
    if exchange.media_type == "text/event-stream" and chunk and not chunk.endswith(b"\n\n"):
        exchange.note(f"An event is written in pieces, which one client loses: {chunk[-200:]!r}")
