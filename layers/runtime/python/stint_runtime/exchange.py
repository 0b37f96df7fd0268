"""One request and its response as an ASGI exchange."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from stint_runtime.response import Headers, Response

Message = MutableMapping[str, Any]
App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]],
    Awaitable[None],
]


class Exchange:
    """The receive and send channels of an ASGI app for one request, which enforce the protocol.

    https://asgi.readthedocs.io/en/latest/specs/www.html
    """

    def __init__(self, method: str, body: bytes, response: Response) -> None:
        self._method = method
        self._body: bytes | None = body
        self._response = response
        self._status = 0
        self._headers: Headers = []
        self._left: int | None = None
        self._ended = asyncio.Event()
        self.complete = False

    async def receive(self) -> Message:
        """Return the request's body, then wait for the end: Lambda does not report a client's disconnect."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._ended.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Process a message of the app. Raises RuntimeError if it violates the protocol."""
        expected = "http.response.body" if self._status else "http.response.start"
        if self._ended.is_set() or message["type"] != expected:
            state = "after the end of the response" if self._ended.is_set() else f"in place of {expected}"
            raise RuntimeError(f"The app sent {message['type']} {state}.")
        if self._status:
            await self._send_body(message.get("body", b""), last=not message.get("more_body", False))
        else:
            self._start(message["status"], [(bytes(n), bytes(v)) for n, v in message.get("headers", ())])

    def end(self) -> None:
        """Refuse further messages, and make a waiting `receive` return the disconnect."""
        self._ended.set()

    def _start(self, status: int, headers: Headers) -> None:
        self._status, self._headers = status, headers
        lengths = [int(value) for name, value in headers if name.lower() == b"content-length"]
        if lengths and not self._bodiless:
            self._left = lengths[0]

    @property
    def _bodiless(self) -> bool:
        return self._method == "HEAD" or self._status in (204, 304)

    async def _send_body(self, data: bytes, *, last: bool) -> None:
        if self._bodiless:
            data = b""
        # Before the bytes are sent: a client would wait for the missing ones, or take the rest for another response.
        self._count(data, last=last)
        await self._response.write(self._status, self._headers, data, last=last)
        if last:
            self.complete = True
            self.end()

    def _count(self, data: bytes, *, last: bool) -> None:
        if self._left is None:
            return
        self._left -= len(data)
        if self._left < 0 or (last and self._left):
            kind = "longer" if self._left < 0 else "shorter"
            raise RuntimeError(f"The app's response is {kind} than its Content-Length.")
