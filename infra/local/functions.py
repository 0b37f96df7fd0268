"""The local Lambda service. It starts function processes on demand, reuses, limits and replaces them.

    kind of call   waits for a process                             fails
    synchronous    if no other call waits; else it is Throttled    with the function's error
    asynchronous   as long as it takes                             after retries, with a record for a queue

Work runs in tasks of this service, not of the callers, because an invocation goes on if its caller leaves.
"""

import asyncio
import json
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from infra.local.function_process import FunctionProcess, FunctionSpec, Log, Root
from infra.local.guardian import Guardian
from infra.local.invocation import FunctionError, Invocation
from infra.local.opt import link_runtime, merge_layers
from infra.local.pools import Pool, ProcessPool, SharedPool, Throttled
from infra.local.runtime_api import BUFFERED_LIMIT
from infra.local.shared_process import SharedProcess

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
Started = TypeVar("Started", bound=FunctionProcess)
SendFailure = Callable[[str, str], Awaitable[None]]


class UnknownFunction(LookupError):
    """There is no function with this name."""


class PayloadTooLarge(ValueError):
    """The event is larger than Lambda accepts in a synchronous invocation, 6 MB (413)."""


class Functions:
    """The functions of `specs`, each with at most `concurrency` processes.

    A call beyond them gets Throttled if another one waits already; without `throttle` every call waits.
    `log` gets (function name, line) for the output of the functions. `retry_delay` is the time between the attempts of
    an asynchronous invocation (Lambda waits one and two minutes). `send_failure` gets the ARN of a queue and the
    record of an event whose last attempt failed.
    """

    def __init__(
        self,
        specs: Iterable[FunctionSpec],
        *,
        concurrency: int,
        log: Log,
        throttle: bool = True,
        retry_delay: float = 1.0,
        send_failure: SendFailure | None = None,
    ) -> None:
        self._log = log
        self._retry_delay = retry_delay
        self._send_failure = send_failure
        self._throttle = throttle
        self.concurrency = concurrency
        self._folder = tempfile.TemporaryDirectory(prefix="stint-functions-")
        self._guardian: Guardian | None = None
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pools = {spec.name: self._make_pool(spec) for spec in specs}

    async def invoke(self, name: str, event: bytes, *, stream: bool, client_context: str | None = None) -> Invocation:
        """Run the function, and return once its response has begun or it has failed.

        `client_context` is the caller's JSON. `stream=False` is Lambda's Invoke: a response over 6 MB is an error.
        Raises UnknownFunction, Throttled and PayloadTooLarge.
        """
        pool = self._pool(name, event)
        await pool.acquire(queue=not self._throttle)
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
        await asyncio.gather(*(pool.stop() for pool in self._pools.values()))
        if self._guardian:
            await self._guardian.stop()
        self._folder.cleanup()

    def processes(self, name: str) -> set[int]:
        """Return the ids of a function's live processes."""
        return self._pools[name].pids

    def require(self, name: str) -> None:
        """Raise UnknownFunction unless the function exists."""
        if name not in self._pools:
            raise UnknownFunction(f"Function not found: {name}; there are {', '.join(sorted(self._pools)) or 'none'}.")

    def _pool(self, name: str, event: bytes) -> Pool:
        self.require(name)
        if len(event) > PAYLOAD_LIMIT:
            raise PayloadTooLarge(f"The event has {len(event)} bytes; Lambda takes {PAYLOAD_LIMIT}.")
        return self._pools[name]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attempt(self, pool: Pool, request_id: str, event: bytes) -> None:
        retries, attempts = pool.spec.retries, 1 + pool.spec.retries.count
        for attempt in range(attempts):
            await asyncio.sleep(self._retry_delay * attempt)
            # An asynchronous event is never throttled: Lambda keeps it in a queue of its own.
            await pool.acquire(queue=True)
            invocation = Invocation(request_id, event, limit=BUFFERED_LIMIT)
            await self._run(pool, invocation)
            await invocation.read()
            if invocation.error is None:
                return
            self._log(pool.spec.name, f"Attempt {attempt + 1} of {attempts} failed: {invocation.error.message}")
        if self._send_failure and retries.queue_arn:
            await self._send_failure(retries.queue_arn, failure_record(invocation, pool.spec.arn, attempts))

    async def _run(self, pool: Pool, invocation: Invocation) -> None:
        try:
            await pool.run(invocation)
        except OSError as error:
            invocation.finish(FunctionError.of("Runtime.InvalidEntrypoint", f"The function can't be started: {error}"))
        finally:
            # Without effect on an invocation that has ended. A cancelled one must not leave its reader waiting.
            invocation.finish(FunctionError.of("Sandbox.Failure", "The function was stopped."))
            pool.release()

    def _make_pool(self, spec: FunctionSpec) -> Pool:
        folder = Path(self._folder.name)
        root = Root(folder / spec.name / "opt", folder / "runtime")
        if spec.at_once > 1:
            return SharedPool(spec, self.concurrency, lambda: self._start(SharedProcess, spec, root))
        return ProcessPool(spec, self.concurrency, lambda: self._start(FunctionProcess, spec, root))

    async def _start(self, kind: type[Started], spec: FunctionSpec, root: Root) -> Started:
        guardian = await self._prepare(root, spec)
        return await kind.start(spec, root, self._log, guardian)

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


def failure_record(invocation: Invocation, arn: str, attempts: int) -> str:
    """Return the record that a failure destination gets of an event, from the invocation of its last attempt.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    """
    payload = invocation.error.payload if invocation.error else b"null"
    context: dict[str, Any] = {"requestId": invocation.request_id, "functionArn": f"{arn}:$LATEST"}
    context |= {"condition": "RetriesExhausted", "approximateInvokeCount": attempts}
    return json.dumps(
        {
            "version": "1.0",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "requestContext": context,
            "requestPayload": json.loads(invocation.event),
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": json.loads(payload),
        }
    )
