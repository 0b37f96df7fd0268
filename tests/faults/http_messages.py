"""Requests and answers of AWS clients, as bytes of HTTP/1.1."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

LIMIT = 64 * 1024 * 1024
WITHOUT_BODY = (204, 304)


@dataclass
class HttpMessage:
    """A request or an answer. Names of headers are in lower case."""

    start: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: str = ""
    """The length that an answer to HEAD announces, which has no body."""

    @property
    def method(self) -> str:
        return self.start.partition(" ")[0]

    @property
    def target(self) -> str:
        return self.start.split(" ")[1]

    @property
    def status(self) -> int:
        return int(self.start.split(" ")[1])

    def to_bytes(self) -> bytes:
        length = self.length or str(len(self.body))
        lines = [self.start, *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode("latin-1") + self.body


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> HttpMessage:
    """Read a request. A client that asks for it is told to send the body."""
    start, headers = await _read_head(reader)
    if headers.pop("expect", ""):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return HttpMessage(start, headers, await _read_body(reader, headers))


async def read_answer(reader: asyncio.StreamReader, request: HttpMessage) -> HttpMessage:
    """Read the answer to a request."""
    start, headers = await _read_head(reader)
    answer = HttpMessage(start, headers)
    if request.method == "HEAD" or answer.status in WITHOUT_BODY:
        answer.length = headers.pop("content-length", "0")
    else:
        answer.body = await _read_body(reader, headers)
    return answer


def make_answer(status: int, headers: Mapping[str, str], body: bytes) -> HttpMessage:
    return HttpMessage(f"HTTP/1.1 {status} Replaced", dict(headers), body)


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return start, {name.lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.pop("transfer-encoding", "") == "chunked":
        return await _read_chunks(reader)
    return await reader.readexactly(int(headers.pop("content-length", "0")))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    while (await reader.readline()).strip():
        pass
    return bytes(body)
