"""HTTP/1.1 client for the Runtime API: one connection per request, over asyncio streams.

The Runtime API is plain HTTP on loopback. `http.client` would need a thread and import `email` and `ssl`.
asyncio sets TCP_NODELAY on every TCP socket, so each write is sent at once.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_HEAD_LIMIT = 1024 * 1024


class ProtocolError(OSError):
    """The server does not speak HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of the server; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to `host:port`."""
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port), limit=_HEAD_LIMIT)


def request_head(method: str, path: str, host: str, headers: Mapping[str, str]) -> bytes:
    """Return the request line and the headers."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(f"{name}: {headers[name]}" for name in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def read_answer(reader: asyncio.StreamReader, arrived: Callable[[], None] | None = None) -> Answer:
    """Read one whole response, with any kind of message length (RFC 9112 section 6.3).

    `arrived` is called after the first byte.
    """
    try:
        first = await reader.readexactly(1) if arrived else b""
        if arrived:
            arrived()
        status, headers = await _read_head(reader, first)
        # Informational responses (RFC 9110, section 15.2) precede the one that counts.
        while status < 200:
            status, headers = await _read_head(reader)
        if "chunked" in headers.get("transfer-encoding", "").lower():
            body = await _read_chunks(reader)
        elif "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        else:
            body = await reader.read()
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise ProtocolError(f"The Runtime API's response is incomplete or malformed: {error}") from error
    return Answer(status, headers, body)


async def _read_head(reader: asyncio.StreamReader, first: bytes = b"") -> tuple[int, dict[str, str]]:
    status_line, *lines = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(status_line.split(" ", 2)[1]), {name.lower(): value.strip() for name, _, value in pairs}


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return bytes(body)
