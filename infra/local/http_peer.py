"""The server side of one HTTP/1.1 connection: h11 over asyncio streams."""

import asyncio
import os
import socket
from collections.abc import Mapping

import h11

_HEAD_LIMIT = 1024 * 1024
_READ_SIZE = 64 * 1024


class HttpPeer:
    """Reader of requests, whose bodies it reads in chunks, with trailers, and writer of responses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_LIMIT)

    async def request(self) -> h11.Request | None:
        """Wait for the next request, and return None if the connection ends."""
        if self._connection.our_state is h11.DONE and self._connection.their_state is h11.DONE:
            self._connection.start_next_cycle()
        if self._connection.our_state is not h11.IDLE:
            return None
        event = await self.event()
        return event if isinstance(event, h11.Request) else None

    async def event(self) -> h11.Event:
        """Return the next event. Raises h11.RemoteProtocolError if the peer disconnects within a message."""
        while (event := self._connection.next_event()) is h11.NEED_DATA:
            if self._connection.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._connection.receive_data(await self._reader.read(_READ_SIZE))
        # PAUSED means a second request before the response to the first, which runtimes do not send.
        return event if isinstance(event, h11.Event) else h11.ConnectionClosed()

    @property
    def is_closed(self) -> bool:
        """Return whether the peer is known to have closed the connection."""
        return self._reader.at_eof()

    def check(self) -> None:
        """Raise ConnectionError if the peer discarded bytes: a reset that follows the peer's end is no read error."""
        if self._writer.is_closing():
            raise ConnectionResetError("The peer disconnected before it read the response.")
        if code := self._writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ConnectionResetError(code, os.strerror(code))

    async def next_bytes(self) -> None:
        """Wait until data arrives after a response, or the peer disconnects. Raises ConnectionError."""
        self._connection.receive_data(await self._reader.read(_READ_SIZE))

    async def body(self, limit: int) -> bytes:
        """Read a body, and stop as soon as it exceeds `limit` bytes."""
        data = bytearray()
        while len(data) <= limit and isinstance(event := await self.event(), h11.Data):
            data += event.data
        return bytes(data)

    async def answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response, and close the connection if the request was not read to its end."""
        fields = {"Content-Type": "application/json", **(headers or {}), "Content-Length": str(len(body))}
        if self._connection.their_state is h11.SEND_BODY:
            fields["Connection"] = "close"
        self._send(h11.Response(status_code=status, headers=list(fields.items())))
        self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        await self._writer.drain()

    def _send(self, event: h11.Event) -> None:
        self._writer.write(self._connection.send(event) or b"")
