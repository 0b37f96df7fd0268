"""The local Lambda service. It starts function processes on demand, reuses, limits and replaces them."""

import asyncio
import contextlib
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

from infra.local.failure_record import failure_record
from infra.local.function_process import FunctionProcess, FunctionSpec, Log, Root
from infra.local.guardian import Guardian
from infra.local.invocation import FunctionError, Invocation
from infra.local.opt import link_runtime, merge_layers
from infra.local.runtime_api import BUFFERED_LIMIT

__all__ = [
    "FunctionError",
    "FunctionSpec",
    "Functions",
    "Invocation",
    "PayloadTooLarge",
    "Throttled",
    "UnknownFunction",
]

PAYLOAD_LIMIT = 6 * 1024 * 1024
Keep = Callable[[str, str], Awaitable[None]]
# Seconds that a call waits for a process that has responded but not yet requested an event, before it starts another.
_WIND_DOWN = 0.25


class UnknownFunction(LookupError):
    """There is no function with this name."""


class Throttled(Exception):
    """Every process of the function is busy and another call is waiting (429)."""


class PayloadTooLarge(ValueError):
    """The event is larger than Lambda accepts in a synchronous invocation, 6 MB (413)."""


class _Pool:
    """The processes of one function: at most `concurrency` are busy, and one caller waits."""

    def __init__(self, spec: FunctionSpec, root: Root, concurrency: int) -> None:
        self.spec = spec
        self.root = root
        self.processes: set[FunctionProcess] = set()
        self._idle: list[FunctionProcess] = []
        self._freed = asyncio.Event()
        self._slots = asyncio.Semaphore(concurrency)
        self._waiting = 0

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
        """Return a slot to the pool."""
        self._slots.release()

    def put(self, process: FunctionProcess) -> None:
        """Return a process to the pool, or drop it if it has ended."""
        if process.alive:
            self._idle.append(process)
            self._freed.set()
        else:
            self.processes.discard(process)

    async def take(self) -> FunctionProcess | None:
        """Return an idle process, or None if one must be started. Waits briefly for one that has just responded."""
        if not self._idle and any(process.winding_down for process in self.processes):
            self._freed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._freed.wait(), _WIND_DOWN)
        while self._idle:
            process = self._idle.pop()
            if process.alive:
                return process
            self.processes.discard(process)
            await process.stop()
        return None


class Functions:
    """The functions of `specs`, each with at most `concurrency` processes.

    `log` gets (function name, line) for the output of the functions. `retry_delay` is the time between the attempts of
    an asynchronous invocation (Lambda waits one and two minutes). `keep` gets the ARN of a queue and the record of an
    event whose last attempt failed.
    """

    def __init__(
        self,
        specs: Iterable[FunctionSpec],
        *,
        concurrency: int,
        log: Log,
        retry_delay: float = 1.0,
        keep: Keep | None = None,
    ) -> None:
        self._log = log
        self._retry_delay = retry_delay
        self._keep = keep
        self.concurrency = concurrency
        self._folder = tempfile.TemporaryDirectory(prefix="stint-functions-")
        self._guardian: Guardian | None = None
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        folder = Path(self._folder.name)
        self._pools = {
            spec.name: _Pool(spec, Root(folder / spec.name / "opt", folder / "runtime"), concurrency) for spec in specs
        }

    async def invoke(self, name: str, event: bytes, *, stream: bool, client_context: str | None = None) -> Invocation:
        """Run the function, and return once its response has begun or it has failed.

        `client_context` is the caller's JSON. `stream=False` is Lambda's Invoke: a response over 6 MB is an error.
        Raises UnknownFunction, Throttled and PayloadTooLarge.
        """
        pool = self._pool(name, event)
        await pool.acquire(queue=False)
        limit = None if stream else BUFFERED_LIMIT
        invocation = Invocation(str(uuid.uuid4()), event, limit=limit, client_context=client_context)
        self._spawn(self._run(pool, invocation))
        await invocation.begun.wait()
        return invocation

    async def invoke_async(self, name: str, event: bytes) -> str:
        """Accept an event (InvocationType=Event) and return its request id at once. A failure is retried."""
        pool = self._pool(name, event)
        request_id = str(uuid.uuid4())
        self._spawn(self._attempt(pool, request_id, event))
        return request_id

    async def stop(self) -> None:
        """Kill every process and remove all files."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        processes = [process for pool in self._pools.values() for process in pool.processes]
        await asyncio.gather(*(process.stop() for process in processes))
        if self._guardian:
            await self._guardian.stop()
        self._folder.cleanup()

    def processes(self, name: str) -> set[int]:
        """Return the ids of a function's live processes."""
        return {process.pid for process in self._pools[name].processes if process.alive}

    def require(self, name: str) -> None:
        """Raise UnknownFunction unless the function exists."""
        if name not in self._pools:
            raise UnknownFunction(f"Function not found: {name}; there are {', '.join(sorted(self._pools)) or 'none'}.")

    def _pool(self, name: str, event: bytes) -> _Pool:
        self.require(name)
        if len(event) > PAYLOAD_LIMIT:
            raise PayloadTooLarge(f"The event has {len(event)} bytes; Lambda takes {PAYLOAD_LIMIT}.")
        return self._pools[name]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, pool: _Pool, request_id: str, event: bytes) -> None:
        retries, attempts = pool.spec.retries, 1 + pool.spec.retries.count
        for attempt in range(attempts):
            await asyncio.sleep(self._retry_delay * attempt)
            await pool.acquire(queue=True)
            invocation = Invocation(request_id, event, limit=BUFFERED_LIMIT)
            await self._run(pool, invocation)
            await invocation.read()
            if invocation.error is None:
                return
            self._log(pool.spec.name, f"Attempt {attempt + 1} of {attempts} failed: {invocation.error.message}")
        if self._keep and retries.queue_arn:
            await self._keep(retries.queue_arn, failure_record(invocation, pool.spec.arn, attempts))

    async def _run(self, pool: _Pool, invocation: Invocation) -> None:
        try:
            taken = False
            while not taken:
                process = await self._process(pool)
                taken = await process.serve(invocation)
                pool.put(process)
        except OSError as error:
            invocation.finish(FunctionError.of("Runtime.InvalidEntrypoint", f"The function can't be started: {error}"))
        finally:
            invocation.finish(FunctionError.of("Sandbox.Failure", "The function was stopped."))
            pool.release()

    async def _process(self, pool: _Pool) -> FunctionProcess:
        if process := await pool.take():
            return process
        guardian = await self._prepare(pool.root, pool.spec)
        process = await FunctionProcess.start(pool.spec, pool.root, self._log, guardian)
        pool.processes.add(process)
        return process

    async def _prepare(self, root: Root, spec: FunctionSpec) -> Guardian:
        """Create /opt, /var/runtime and the guardian, unless they exist."""
        async with self._starting:
            if self._guardian is None:
                guardian = Guardian()
                await guardian.start(Path(self._folder.name))
                self._guardian = guardian
                link_runtime(root.runtime)
            if not root.opt.exists():
                merge_layers(spec.layers, root.opt)
            return self._guardian
