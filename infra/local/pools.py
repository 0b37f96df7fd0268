"""The processes of a function: one for each invocation, or one for many.

    ProcessPool   Lambda's default. A process has one event; an idle one is reused; more are started up to a limit.
    SharedPool    as on Lambda Managed Instances. A process has many events at once; another one is started only if
                  all that there are request no events for a while.

A process may die while it waits for an event, so both run an event again that its process never read.

Right after its response, a process is busy for some milliseconds until it requests the next event. A call that comes
then waits for it (`_WIND_DOWN`), because a cold start takes far longer, and a client that sends one request after
another would otherwise get two processes.

A process for each stream takes 70 MB and a start, so `make run` has one for all streams of a function, with the memory
of Managed Instances. `CONCURRENCY=lambda`, `make invoke` and the tests of deployed behaviour have one for each.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from infra.local.delivery import Delivery
from infra.local.function_process import INIT_TIMEOUT, FunctionProcess, FunctionSpec
from infra.local.invocation import Invocation
from infra.local.shared_process import SharedProcess
from infra.local.source_version import source_version

# Seconds that a call waits for a process that has responded but not yet requested an event, before it starts another.
_WIND_DOWN = 0.25
# Seconds without a request for an event, after which a process that runs many invocations gets a second one beside it.
_STALL = 2.0


class Throttled(Exception):
    """Every process of the function is busy and another call is waiting (429)."""


class Pool(Protocol):
    """The processes of one function."""

    spec: FunctionSpec

    @property
    def pids(self) -> set[int]:
        """Return the ids of the live processes."""

    async def acquire(self, *, queue: bool) -> None:
        """Take the right to run an invocation. Raises Throttled if there is none, unless the caller may queue."""

    async def run(self, invocation: Invocation) -> None:
        """Run an invocation to its end. Raises OSError if no process can be started."""

    def release(self) -> None:
        """Return the right to run an invocation."""

    async def stop(self) -> None:
        """Kill the processes."""


class ProcessPool:
    """A process for each invocation: at most `concurrency` are busy, and one caller waits."""

    def __init__(self, spec: FunctionSpec, concurrency: int, start: Callable[[], Awaitable[FunctionProcess]]) -> None:
        self.spec = spec
        self._start = start
        self._processes: dict[FunctionProcess, int] = {}
        """Each with the version of its code."""
        self._idle: list[FunctionProcess] = []
        self._freed = asyncio.Event()
        self._slots = asyncio.Semaphore(concurrency)
        self._waiting = 0

    @property
    def pids(self) -> set[int]:
        return {process.pid for process in self._processes if process.alive}

    async def acquire(self, *, queue: bool) -> None:
        """Take a slot. Raises Throttled if another caller is waiting for one, unless the caller may queue."""
        if self._slots.locked() and self._waiting and not queue:
            raise Throttled(f"{self.spec.name}: rate exceeded; every process is busy and another call waits.")
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1

    def release(self) -> None:
        self._slots.release()

    async def run(self, invocation: Invocation) -> None:
        taken = False
        while not taken:
            process = await self._take()
            taken = await process.serve(invocation)
            self._put(process)

    async def stop(self) -> None:
        await asyncio.gather(*(process.stop() for process in self._processes))

    def _put(self, process: FunctionProcess) -> None:
        """Return a process to the pool, or drop it if it has ended."""
        if process.alive:
            self._idle.append(process)
            self._freed.set()
        else:
            self._processes.pop(process, None)

    async def _take(self) -> FunctionProcess:
        """Return an idle process with the current code, or start one. Waits briefly for one that has just responded."""
        if not self._idle and any(process.is_finishing for process in self._processes):
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _WIND_DOWN)
        # Before the start: a file that changes meanwhile is seen by the next call.
        version = source_version(self.spec.code) if self.spec.reloads else 0
        while self._idle:
            process = self._idle.pop()
            if process.alive and self._processes[process] == version:
                return process
            await process.stop()
            self._processes.pop(process, None)
        process = await self._start()
        self._processes[process] = version
        return process


class SharedPool:
    """One process for all invocations. Those beyond its limit wait, in the order of their arrival.

    A process that requests no events, because it ends or lacks memory, gets another one beside it, up to `processes`.
    """

    def __init__(self, spec: FunctionSpec, processes: int, start: Callable[[], Awaitable[SharedProcess]]) -> None:
        self.spec = spec
        self._limit = processes
        self._start = start
        self._processes: list[SharedProcess] = []
        self._turn = asyncio.Lock()

    @property
    def pids(self) -> set[int]:
        return {process.pid for process in self._processes if process.alive}

    async def acquire(self, *, queue: bool) -> None:
        """Return at once: every caller may wait."""

    def release(self) -> None:
        """Do nothing: see `acquire`."""

    async def run(self, invocation: Invocation) -> None:
        taken = False
        while not taken:
            # One event at a time looks for a process, so that a burst starts one process, and arrival decides the
            # order.
            async with self._turn:
                dispatched = await self._dispatch(invocation)
            if dispatched is None:
                return
            process, delivery = dispatched
            taken = await process.finish(delivery)
            await self._drop(process)

    async def stop(self) -> None:
        await asyncio.gather(*(process.stop() for process in self._processes))

    async def _dispatch(self, invocation: Invocation) -> tuple[SharedProcess, Delivery] | None:
        """Send an event to the first process that requests one. Returns None if a new process cannot start."""
        while True:
            for process in self._processes:
                if process.available:
                    return process, process.begin(invocation)
            if await self._must_start():
                process = await self._start()
                self._processes.append(process)
                seconds = max(INIT_TIMEOUT, self.spec.timeout)
                if not await process.wait_until_ready(seconds):
                    await process.fail_init(invocation, seconds)
                    self._processes.remove(process)
                    return None

    async def _must_start(self) -> bool:
        """Wait for a process that requests an event. Returns True if another process is to be started instead."""
        for process in tuple(self._processes):
            await self._drop(process)
        usable = [process for process in self._processes if process.usable]
        if not usable:
            return True
        waiting = [asyncio.create_task(process.wait_until_ready(_STALL)) for process in usable]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
        stalled = not any(process.available or process.full for process in usable if process.usable)
        return stalled and len(self._processes) < self._limit

    async def _drop(self, process: SharedProcess) -> None:
        """Stop a process that takes no further events, once its last invocation has ended."""
        if not process.usable and not process.in_flight and process in self._processes:
            await process.stop()  # first, so that `stop` finds the process if this task is cancelled
            if process in self._processes:
                self._processes.remove(process)
