"""HTTP proxy between a DynamoDB client and the engine, which counts calls, injects faults, and holds calls.

The first attempt of a call and its retries have the same `amz-sdk-invocation-id`. Faults select calls, not attempts: a
client that retries does not get past them, except past `lose_first_answer`.
"""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from tests.store.proxy_rules import (
    Action,
    Editing,
    Exchange,
    Failing,
    Losing,
    Replacing,
    Rounds,
    Rule,
    See,
    Throttling,
    Watching,
)

LIMIT = 64 * 1024 * 1024
CHARGED = {
    *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "BatchGetItem", "BatchWriteItem", "Query", "Scan"),
    *("TransactGetItems", "TransactWriteItems"),
}
ASK_FOR_UNITS = b',"ReturnConsumedCapacity":"TOTAL"}'


@dataclass
class Peer:
    """A connection to the engine."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@dataclass
class Message:
    """A request or an answer. Names of headers are in lower case."""

    start: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def made(cls, exchange: Exchange) -> Self:
        """Return the answer of an exchange that is not the engine's own."""
        headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": "PROXY"}
        return cls(f"HTTP/1.1 {exchange.status} Replaced", headers, exchange.answer)

    def to_bytes(self) -> bytes:
        lines = [self.start, *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\r\n".join([*lines, f"content-length: {len(self.body)}", "", ""]).encode("latin-1") + self.body


class DynamoDBProxy:
    """Context manager that serves on loopback in a separate thread, at `url`. All methods are for any thread.

    `calls` counts the calls that were sent on, once per call; `units` has their consumed capacity units.
    """

    def __init__(self, endpoint: str) -> None:
        parts = urlsplit(endpoint)
        self._engine = (parts.hostname or "", parts.port or 80)
        self.url = ""
        self.down = False
        """Whether all calls fail before they take effect."""
        self.calls: Counter[str] = Counter()
        self.units: Counter[str] = Counter()
        self.observers: list[Callable[[str, bytes], None]] = []
        """Functions that receive the operation and the body of each request. They must not block."""
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._started = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        # A thread per call in flight: functions of tests may block.
        self._threads = ThreadPoolExecutor(128, "proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()
        self._threads.shutdown(cancel_futures=True)

    def environment(self) -> dict[str, str]:
        """Return the variables that make DynamoDB clients use the proxy."""
        return {"AWS_ENDPOINT_URL_DYNAMODB": self.url}

    def forget(self) -> None:
        """Reset the counters, and drop all faults, so that tests can share the proxy."""
        self.down = False
        self.calls.clear()
        self.units.clear()
        self._rules.clear()

    def restart(self) -> None:
        """Be up again. Requests that were sent before, and not yet received, have no effect."""
        asyncio.run_coroutine_threadsafe(self._drop_connections(), self._loop).result()
        self.down = False

    @contextmanager
    def watching(self, see: See) -> Iterator[None]:
        """Call `see` with operation and body before each call is sent on. It may block.

        If it raises an error, the connection is closed. The error, unless it is an OSError, is raised at the end.
        """
        rule = Watching(see)
        with self._having(rule):
            yield
        rule.check()

    @contextmanager
    def watch(self) -> Iterator[list[str]]:
        """Yield a list to which the operation and the body of each call are appended."""
        seen: list[str] = []
        with self.watching(lambda operation, body: seen.append(f"{operation} {body}")):
            yield seen

    @contextmanager
    def failing(self, operation: str, marker: str = "", *, lost: bool = False, times: int = 99) -> Iterator[None]:
        """Close the connection of calls whose body contains `marker`. With `lost`, they take effect before."""
        with self._having(Failing(operation, marker, lost, times)):
            yield

    @contextmanager
    def fail(
        self,
        operation: str,
        code: str = "ThrottlingException",
        *,
        status: int | None = None,
        message: str = "as the test asked",
        times: int = 1000,
        performed: bool = False,
    ) -> Iterator[None]:
        """Answer calls with an error. A `performed` one takes effect, and its answer is replaced."""
        answered = status or (500 if performed else 400)
        with self._having(Replacing(operation, code, answered, message, times, performed)):
            yield

    @contextmanager
    def throttling(self, chosen: Callable[[str, str], bool]) -> Iterator[None]:
        """Throttle attempts, also repeated ones, that `chosen` selects by operation and body. It must not block."""
        with self._having(Throttling(chosen)):
            yield

    @contextmanager
    def editing(
        self,
        operation: str = "",
        *,
        request: Callable[[dict[str, Any]], object] | None = None,
        answer: Callable[[dict[str, Any]], object] | None = None,
    ) -> Iterator[None]:
        """Let functions change the JSON of requests, and of answers after the call took effect. They may block."""
        rule = Editing(operation, request, answer)
        with self._having(rule):
            yield
        rule.check()

    def lose_first_answer(self, operation: str, after: int | None = None) -> list[int]:
        """Lose an answer to an attempt that took effect: the first one, or the first with the status `after`.

        Returns a list, to which the statuses of all answers are added, that of the lost one as well. It applies until
        `forget`.
        """
        rule = Losing(operation, after)
        self._rules.insert(0, rule)
        return rule.statuses

    @contextmanager
    def held_together(self, *operations: str) -> Iterator[Counter[str]]:
        """Hold the first calls until all of `operations` have been called, so they must be concurrent."""
        with self.held_in_rounds(operations) as seen:
            yield seen

    @contextmanager
    def held_in_rounds(self, *rounds: Sequence[str]) -> Iterator[Counter[str]]:
        """Hold each call until all calls of its round were made. Rounds are in order. Yields counts of all calls."""
        rule = Rounds(rounds, self._loop)
        try:
            with self._having(rule):
                yield rule.seen
        finally:
            rule.release()
        rule.check()

    @contextmanager
    def _having(self, rule: Rule) -> Iterator[None]:
        self._rules.insert(0, rule)
        try:
            yield
        finally:
            with suppress(ValueError):  # forgotten
                self._rules.remove(rule)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LIMIT)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close their sockets

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._talk(Peer(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, client: Peer) -> None:
        peers = [client]
        try:
            engine = Peer(*await asyncio.open_connection(*self._engine, limit=LIMIT))
            peers.append(engine)
            while True:
                request = await _read(client.reader)
                exchange = Exchange(request.headers, request.body, self._run)
                answer = await self._answer(request, exchange, engine)
                client.writer.write(answer.to_bytes())
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            for peer in peers:
                peer.writer.transport.abort()

    async def _drop_connections(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)  # waiting connections are accepted
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run(self, function: Callable[[], Any]) -> Awaitable[Any]:
        return self._loop.run_in_executor(self._threads, function)

    async def _answer(self, request: Message, exchange: Exchange, engine: Peer) -> Message:
        """Return the answer. Raises OSError if the connection is to be closed."""
        for observe in self.observers:
            observe(exchange.operation, exchange.body)
        if self.down:
            exchange.close()
        rules = list(self._rules)
        await _apply([rule.before for rule in rules], exchange)
        if exchange.answered:
            return Message.made(exchange)
        answer = await self._forward(request, exchange, engine)
        exchange.status, exchange.answer = int(answer.start.split(" ")[1]), answer.body
        await _apply([rule.after for rule in rules], exchange)
        return answer if exchange.answer == answer.body else Message.made(exchange)

    async def _forward(self, request: Message, exchange: Exchange, engine: Peer) -> Message:
        self.calls[exchange.operation] += exchange.is_first
        charged = exchange.operation in CHARGED and b'"ReturnConsumedCapacity"' not in exchange.body
        request.body = exchange.body.rstrip()[:-1] + ASK_FOR_UNITS if charged else exchange.body
        engine.writer.write(request.to_bytes())
        answer = await _read(engine.reader)
        if b'"ConsumedCapacity"' in answer.body:
            self._charge(exchange.operation, answer.body)
        return answer

    def _charge(self, operation: str, body: bytes) -> None:
        capacity = json.loads(body).get("ConsumedCapacity", [])
        for consumed in capacity if isinstance(capacity, list) else [capacity]:
            self.units[operation] += consumed["CapacityUnits"]


async def _apply(actions: Sequence[Action], exchange: Exchange) -> None:
    """Run the actions until one answers."""
    for act in actions:
        await act(exchange)
        if exchange.answered:
            return


async def _read(reader: asyncio.StreamReader) -> Message:
    """Read a request, or an answer of the engine."""
    start, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    if headers.pop("transfer-encoding", "") == "chunked":
        return Message(start, headers, await _read_chunks(reader))
    return Message(start, headers, await reader.readexactly(int(headers.pop("content-length", "0"))))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return bytes(body)
