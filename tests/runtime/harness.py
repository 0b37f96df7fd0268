"""Helpers of the tests of functions: a service, events, a reader, a gate."""

import asyncio
import json
import subprocess
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.local.functions import Functions, Invocation

APPS = Path(__file__).parent / "apps"
LAYERS = Path(__file__).parents[2] / "layers"
RUNTIME_LAYER = LAYERS / "runtime"
CORE = LAYERS / "core"
"""The packages of the layer that all functions have, with the HTTP/1.1 client of the runtime."""
Json = dict[str, Any]


def proxy_event(method: str = "GET", path: str = "/echo", stage: str = "", **fields: Any) -> Json:
    return {
        "resource": "/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": {"Host": "api.example.com"},
        "multiValueHeaders": {"Host": ["api.example.com"], "X-Forwarded-Proto": ["https"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": path.removeprefix("/")},
        "requestContext": {"path": stage + path, "stage": stage[1:], "identity": {"sourceIp": "192.0.2.7"}},
        "body": None,
        "isBase64Encoded": False,
        **fields,
    }


def with_gate(event: Json, gate: "Gate") -> Json:
    return {**event, "multiValueHeaders": {**event["multiValueHeaders"], "X-Gate": [str(gate.port)]}}


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def split(payload: bytes) -> tuple[Json, bytes]:
    prelude, _, body = payload.partition(bytes(8))
    return json.loads(prelude), body


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # another process's state sets no event
            await asyncio.sleep(0.01)


def running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state) and not state.startswith("Z")


class Reader:
    """Reader of a streamed response, piece by piece."""

    def __init__(self, invocation: Invocation) -> None:
        self._chunks = invocation.body()
        self.data = b""

    async def until(self, end: Callable[[bytes], bool]) -> bytes:
        while not end(self.data):
            self.data += await anext(self._chunks)
        return self.data

    async def rest(self) -> bytes:
        async for chunk in self._chunks:
            self.data += chunk
        return self.data

    async def leave(self) -> None:
        await self._chunks.aclose()


@dataclass
class Gate:
    """Points in an app at which it waits until the test opens them."""

    port: int = 0
    _reached: dict[str, asyncio.Future[asyncio.StreamWriter]] = field(default_factory=dict)

    def _point(self, name: str) -> asyncio.Future[asyncio.StreamWriter]:
        return self._reached.setdefault(name, asyncio.get_running_loop().create_future())

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = (await reader.readline()).decode().strip()
        self._point(name).set_result(writer)

    async def reached(self, name: str) -> None:
        async with asyncio.timeout(120):
            await asyncio.shield(self._point(name))

    async def open(self, name: str) -> None:
        await self.reached(name)
        writer = self._reached.pop(name).result()
        writer.write(b"!")
        writer.close()

    def close(self) -> None:
        for point in self._reached.values():
            if point.done():
                point.result().close()


@dataclass
class Service:
    """A local Lambda service with one function, named `f`."""

    functions: Functions
    lines: list[str]

    async def start(self, event: Any, *, stream: bool = True) -> Invocation:
        return await self.functions.invoke("f", json.dumps(event).encode(), stream=stream)

    async def call(self, event: Any) -> tuple[bytes, Invocation]:
        invocation = await self.start(event)
        return await invocation.read(), invocation

    async def json(self, event: Any) -> Any:
        payload, invocation = await self.call(event)
        assert invocation.error is None, invocation.error
        return json.loads(split(payload)[1])

    def errors(self) -> list[Json]:
        """Return the JSON log lines of failures."""
        return [line for line in map(json.loads, self.lines) if line["level"] == "ERROR"]


Start = Callable[..., Awaitable[Service]]
