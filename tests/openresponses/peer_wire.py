"""A tap between Stint and its model server. It checks the requests that Stint sends, too, and connections can fail."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass
from typing import Any

from tests.openresponses.watch import Exchange
from tests.openresponses.wire import Tap


@dataclass(frozen=True)
class Refusal:
    """The answer to one request, which does not reach the server."""

    status: int
    body: Any
    headers: tuple[str, ...] = ()

    def write(self) -> bytes:
        body = json.dumps(self.body).encode()
        fields = ["content-type: application/json", f"content-length: {len(body)}", "connection: close", *self.headers]
        return "\r\n".join([f"HTTP/1.1 {self.status} Refused", *fields, "", ""]).encode() + body


@dataclass(frozen=True)
class Cut:
    """The end of a connection in the middle of a chunked answer: before the first place where the answer has `text`."""

    text: bytes


class PeerTap(Tap):
    """Keeps the exchanges with the Responses API and with Chat Completions, in the order of the requests."""

    def __init__(self, port: int) -> None:
        self.exchanges: list[Exchange] = []
        self.faults: deque[Refusal | Cut] = deque()
        self._open: set[asyncio.StreamWriter] = set()
        super().__init__(port)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the bodies of the requests that reached the server."""
        return [json.loads(exchange.request) for exchange in self.exchanges]

    def hear_request(self, exchange: Exchange) -> None:
        exchange.check_request()
        self.exchanges.append(exchange)

    def plan(self, *faults: Refusal | Cut) -> None:
        """Let the next connections fail, one each, and close those that are kept alive."""
        asyncio.run_coroutine_threadsafe(self._plan(faults), self.loop).result(10)

    async def _plan(self, faults: tuple[Refusal | Cut, ...]) -> None:
        self.faults.extend(faults)
        for writer in self._open:
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        fault = self.faults.popleft() if self.faults else None
        try:
            if isinstance(fault, Refusal):
                await _refuse(reader, writer, fault)
            else:
                await super()._pass(reader, CutWriter(reader, writer, fault.text) if fault else writer)
        finally:
            self._open.discard(writer)


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, refusal: Refusal) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    await reader.readexactly(next(int(line.partition(":")[2]) for line in head if line.startswith("content-length:")))
    writer.write(refusal.write())
    await writer.drain()
    writer.close()


class CutWriter(asyncio.StreamWriter):
    """Writes to the same connection as `writer`, up to a text."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, text: bytes) -> None:
        transport: Any = writer.transport
        super().__init__(transport, transport.get_protocol(), reader, asyncio.get_running_loop())
        self._text = text
        self._written = bytearray()

    def write(self, data: Any) -> None:
        """Write data. Raises ConnectionAbortedError at the text."""
        start = len(self._written)
        self._written += data
        place = self._written.find(self._text)
        if place < 0:
            super().write(data)
            return
        super().write(bytes(self._written[start : max(place, start)]))
        raise ConnectionAbortedError("The connection is cut, as the test planned")
