"""A scripted HTTP/1.1 server in the event loop of a test, which controls each byte and each connection."""

import asyncio
import json
import ssl
import zlib
from collections import deque
from dataclasses import dataclass
from typing import Any, Self

from stint.aws.dynamodb import DynamoDBClient
from stint.aws.environment import AwsEnvironment
from stint.aws.service_client import ClientOptions

Step = bytes | asyncio.Event | None
"""A part of a reply: bytes to send, an event to wait for, or None to close the connection."""


@dataclass(frozen=True)
class Request:
    """A request. `connection` is the number of the server's connection."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def operation(self) -> str:
        return self.headers["x-amz-target"].rpartition(".")[2]

    @property
    def access_key(self) -> str:
        return self.headers["authorization"].partition("Credential=")[2].partition("/")[0]


class DynamoDBServer:
    """Context manager. `script` sets the next replies; after them, all requests are answered with `{}`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.left = asyncio.Event()
        """Set when a client closes a connection."""
        self.readers: list[asyncio.StreamReader] = []
        self._arrived = asyncio.Event()
        self._tls = tls
        self._replies: deque[tuple[Step, ...]] = deque()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self.drop()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    @property
    def attempts(self) -> list[str]:
        """Return the header of each request that counts the attempts."""
        return [request.headers["amz-sdk-request"] for request in self.requests]

    def script(self, *replies: bytes | tuple[Step, ...]) -> None:
        self._replies.extend((reply,) if isinstance(reply, bytes) else reply for reply in replies)

    async def until_received(self, requests: int) -> None:
        """Wait for a number of requests."""
        while len(self.requests) < requests:
            self._arrived.clear()
            await self._arrived.wait()

    async def drop(self) -> None:
        """Close all connections."""
        writers = list(self._writers)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        self._writers.add(writer)
        self.readers.append(reader)
        try:
            while True:
                self.requests.append(await _read(reader, connection))
                self._arrived.set()
                if not await self._reply(writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _reply(self, writer: asyncio.StreamWriter) -> bool:
        for step in self._replies.popleft() if self._replies else (ok(),):
            if step is None:
                return False
            if isinstance(step, asyncio.Event):
                await step.wait()
            else:
                writer.write(step)
        await writer.drain()
        return True


async def _read(reader: asyncio.StreamReader, connection: int) -> Request:
    line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (field.partition(": ") for field in fields if field)
    headers = {name.lower(): value for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, body, connection)


def reply(status: int, body: bytes, **headers: str) -> bytes:
    """Return a response with headers, whose names have `_` in place of `-`."""
    fields = {"Content-Length": str(len(body))} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Reply", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def ok(document: Any = None, **headers: str) -> bytes:
    """Return a successful response with its checksum."""
    body = json.dumps(document or {}).encode()
    return reply(200, body, **{"x-amz-crc32": str(zlib.crc32(body)), **headers})


def error(code: str, status: int = 400, /, *, headers: dict[str, str] | None = None, **more: Any) -> bytes:
    """Return an error response of DynamoDB."""
    document = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", **more}
    return reply(status, json.dumps(document).encode(), **headers or {})


def environment(url: str, **more: str) -> AwsEnvironment:
    variables = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
        "AWS_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL_DYNAMODB": url,
    }
    return AwsEnvironment(variables | more)


class Pauses:
    """A sleep that takes no time, and records its arguments."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


def make_client(server: DynamoDBServer, /, *, variables: dict[str, str] | None = None, **more: Any) -> DynamoDBClient:
    """Return a client of a server, whose pauses take no time."""
    more.setdefault("sleep", Pauses())
    return DynamoDBClient(environment(server.url, **variables or {}), options=ClientOptions(**more))
