"""A real HTTP/1.1 server on loopback with scripted responses, which records its requests."""

import asyncio
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

Part = bytes | float | threading.Event | Callable[[], object]
PATIENCE = 3600.0
"""Seconds, more than any test advances the clock, so that a server does not time out before its client."""


@dataclass(frozen=True)
class Received:
    """A request. `connection` is the number of the server's connection; `left` is set if the client left early."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    left: threading.Event = field(default_factory=threading.Event, compare=False)

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """A chunked response. Parts are bytes to send, seconds to wait, events to wait for, or functions to call.

    The server waits for `before` before it sends the status. Status 0 closes the connection instead. The `ending` "cut"
    closes it after the last part, "hang" keeps it open in silence until the client leaves.
    """

    parts: tuple[Part, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Literal["finish", "cut", "hang"] = "finish"
    before: float | threading.Event = 0.0


class ScriptedHTTPServer:
    """Server in a separate thread. `script` sets the next replies; after them, `answer` makes the replies.

    With `closes_connections`, each connection serves one request, so that clients keep none. Requests to which `aside`
    has a reply are neither recorded nor answered by the script.
    """

    def __init__(self, answer: Callable[[Received], Reply], port: int = 0) -> None:
        self._answer = answer
        self._port = port
        self._replies: deque[Reply] = deque()
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self.requests: list[Received] = []
        self.closes_connections = False
        self.aside: Callable[[Received], Reply | None] | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._started.wait(PATIENCE):
            raise TimeoutError("the server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def bodies(self) -> list[Any]:
        return [request.json() for request in self.requests if request.body]

    def script(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def record(self, received: Received) -> None:
        self.requests.append(received)

    def forget(self) -> None:
        """Drop scripted replies and recorded requests, so that tests can share a server."""
        self._replies.clear()
        self.requests.clear()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.create_task(self._talk(reader, writer, self._connections))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int) -> None:
        try:
            while True:
                received = await _read(reader, connection)
                reply = self.aside(received) if self.aside else None
                if reply is None:
                    self.record(received)
                    reply = self._replies.popleft() if self._replies else self._answer(received)
                if self.closes_connections:
                    reply = replace(reply, headers={**reply.headers, "Connection": "close"})
                if not await _write(reply, received, reader, writer):
                    writer.transport.abort()
                    return
                if self.closes_connections:
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader, connection: int) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, path, headers, body, connection)


async def _write(reply: Reply, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Write a reply, and return whether the connection can serve another request."""
    if reply.status == 0:
        return False
    if await _leaves(reader, reply.before):
        received.left.set()
        return False
    headers = {"Content-Type": "application/json", **reply.headers, "Transfer-Encoding": "chunked"}
    lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    for part in reply.parts:
        if isinstance(part, bytes):
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        elif callable(part):
            part()
        elif await _leaves(reader, part):
            received.left.set()
            return False
    if reply.ending == "hang" and await _leaves(reader, PATIENCE):
        received.left.set()
    if reply.ending != "finish":
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _leaves(reader: asyncio.StreamReader, until: float | threading.Event) -> bool:
    """Wait for a time or an event, and return whether the client closed the connection meanwhile."""
    watch = asyncio.create_task(reader.read(1))
    deadline = time.monotonic() + (PATIENCE if isinstance(until, threading.Event) else until)
    while not watch.done() and time.monotonic() < deadline:
        if isinstance(until, threading.Event) and until.is_set():
            break
        await asyncio.wait({watch}, timeout=min(0.005, deadline - time.monotonic()))
    left = watch.done()
    watch.cancel()
    await asyncio.gather(watch, return_exceptions=True)
    return left
