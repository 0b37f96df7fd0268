"""HTTP proxy between the processes of a test and the engine, which counts calls, injects faults and kills processes."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Self
from urllib.parse import urlsplit

from tests.faults.aws_calls import AwsCall
from tests.faults.http_messages import LIMIT, HttpMessage, read_answer, read_request


class FaultKind(StrEnum):
    """Faults of one call. Except for `lost_once` and `partial`, they apply to all attempts of the call."""

    death_before = "death before the call"
    death_after = "death after its effect"
    throttled = "throttled"
    server_error = "server error"
    timeout = "timeout"
    reset = "connection reset"
    lost = "answer lost"
    lost_once = "first answer lost"
    partial = "partial batch"


DEATHS = (FaultKind.death_before, FaultKind.death_after)
ERRORS = tuple(kind for kind in FaultKind if kind not in DEATHS)
PERFORMED = (FaultKind.death_after, FaultKind.lost, FaultKind.lost_once)
"""The kinds whose call takes effect."""


LONGEST_DELAY = 900
"""The longest delay of SQS, in seconds."""


@dataclass(frozen=True)
class Fault:
    """A fault of the call with this number, counted from 0."""

    kind: FaultKind
    number: int


@dataclass
class ProxyPort:
    """An address of the proxy for one process. `kill` ends the process. Faults are injected if it is `observed`."""

    kill: Callable[[], None]
    observed: bool
    url: str = ""
    server: asyncio.Server | None = None


@dataclass
class Observed:
    """The calls since the proxy was armed, and whether the fault was injected."""

    fault: Fault | None = None
    calls: list[str] = field(default_factory=list)
    call_id: str = ""
    injected: int = 0

    def choose(self, call: AwsCall) -> FaultKind | None:
        """Count a call, and return the kind of fault that this attempt has."""
        if call.is_first:
            self.calls.append(call.name)
        if self.fault is None:
            return None
        if call.is_first and len(self.calls) - 1 == self.fault.number:
            self.call_id = call.call_id
        elif not self.call_id or call.call_id != self.call_id:
            return None
        kind = self.fault.kind
        if (kind in (FaultKind.lost_once, FaultKind.partial) and not call.is_first) or (
            kind is FaultKind.partial and not call.can_split
        ):
            return None
        self.injected += 1
        return kind


class FaultProxy:
    """Context manager that serves on loopback in a thread. Methods are for any other thread."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.observed: Observed | None = None
        self.choose: Callable[[AwsCall], FaultKind | None] = self._choose_observed
        """Returns the fault of an attempt. It runs in the proxy's thread."""
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(self, fault: Fault | None = None) -> Observed:
        """Count calls from now on, and inject a fault."""
        self.observed = Observed(fault)
        return self.observed

    def end(self) -> None:
        """Pass all further calls on."""
        self.observed = None

    def open_port(self, kill: Callable[[], None], *, observed: bool) -> ProxyPort:
        """Open an address for a process."""
        port = ProxyPort(kill, observed)
        asyncio.run_coroutine_threadsafe(self._open(port), self._loop).result()
        return port

    def close_port(self, port: ProxyPort) -> None:
        assert port.server
        self._loop.call_soon_threadsafe(port.server.close)

    async def _open(self, port: ProxyPort) -> None:
        port.server = await asyncio.start_server(partial(self._accept, port), "127.0.0.1", 0, limit=LIMIT)
        self._servers.append(port.server)
        port.url = f"http://127.0.0.1:{port.server.sockets[0].getsockname()[1]}"

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def _accept(self, port: ProxyPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(port, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, port: ProxyPort, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(self.endpoint)
        engine, to_engine = await asyncio.open_connection(parts.hostname, parts.port, limit=LIMIT)
        try:
            while True:
                call = AwsCall(await read_request(reader, writer))
                kind = self.choose(call) if port.observed else None
                answer = await self._answer(call, kind, engine, to_engine)
                if answer is None:
                    if kind in DEATHS:
                        port.kill()
                    elif kind is FaultKind.timeout:
                        await reader.read()
                    return
                writer.write(answer.to_bytes())
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            writer.transport.abort()
            to_engine.transport.abort()

    async def _answer(
        self, call: AwsCall, kind: FaultKind | None, engine: asyncio.StreamReader, to_engine: asyncio.StreamWriter
    ) -> HttpMessage | None:
        """Return the answer that the client gets, or None."""
        if kind in (FaultKind.throttled, FaultKind.server_error):
            return call.refuse(400 if kind is FaultKind.throttled else 500)
        if kind is not None and kind not in (*PERFORMED, FaultKind.partial):
            return None
        rest = call.split() if kind is FaultKind.partial else b""
        undelay(call)
        to_engine.write(call.request.to_bytes())
        answer = await read_answer(engine, call.request)
        if rest:
            call.add_rest(answer, rest)
        return None if kind in PERFORMED else answer

    def _choose_observed(self, call: AwsCall) -> FaultKind | None:
        observed = self.observed
        return None if observed is None else observed.choose(call)


def undelay(call: AwsCall) -> None:
    """Let messages arrive at once, since tests move the clock. Those that an upload sends itself are not waited for."""
    if call.name == "sqs.SendMessage":
        message = json.loads(call.request.body)
        if message.get("DelaySeconds", 0) < LONGEST_DELAY:
            call.request.body = json.dumps(message | {"DelaySeconds": 0}).encode()


def stop_process(pid: int) -> None:
    """Ask a process to end after what it runs."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def kill_process(pid: int) -> None:
    """Kill a process like the end of a Lambda environment."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
