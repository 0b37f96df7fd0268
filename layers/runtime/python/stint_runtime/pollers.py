"""Many invocations in one event loop, for Lambda Managed Instances.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-managed-instances-execution-environment.html

Lambda sends as many events at once as there are open requests for one. So there are `concurrency` tasks, and each is
where a process with one invocation is as a whole:

    idle        waits while the process uses too much memory, unless no other task is busy: without a request, the
                process would never be used again
    waiting     its request is open, in `_waiting`, and can be withdrawn: Lambda has not begun to answer it
    arrived     the first byte of an event is here. The request leaves `_waiting`: to cancel it would lose the event
    serving     the app runs, and its response is sent

A task counts as busy from its decision to request until its response is sent. It decides and counts without an await in
between, so two idle tasks cannot both take themselves for the only one.

A failure that must end the process withdraws the requests that wait, and lets the others finish. SIGTERM cancels all.
"""

import asyncio
import logging
from contextlib import suppress

from stint_runtime.client import Invocation, RuntimeApi
from stint_runtime.context import current_context
from stint_runtime.errors import log
from stint_runtime.exchange import App
from stint_runtime.loop import serve
from stint_runtime.memory import Memory
from stint_runtime.options import Options

MEMORY_SECONDS = 0.25
"""Seconds between two looks at the memory while it is over its limit."""


class JsonHandler(logging.Handler):
    """Write a line as JSON, as Managed Instances require, with the ids of the invocation in whose task it is logged."""

    def emit(self, record: logging.LogRecord) -> None:
        context = current_context.get()
        fields: dict[str, object] = {"logger": record.name}
        if context:
            fields |= {"requestId": context.aws_request_id, "xray_trace_id": context.xray_trace_id}
        if record.exc_info and record.exc_info[1]:
            fields["exception"] = logging.Formatter().formatException(record.exc_info)
        log(record.levelname, record.getMessage(), **fields)


def install_json_logs() -> None:
    """Write warnings and errors of all modules as JSON, except those for which the app sets up a handler."""
    handler = JsonHandler(logging.WARNING)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(handler)  # without one, it gets a handler that drops its lines
    logging.lastResort = handler


class Pollers:
    """Tasks that each request an event, run the app, respond, and request the next event.

    A failure that must end the process stops the requests for events. The other invocations run to their ends or
    deadlines first. While the process uses too much memory, it requests no events, unless it would be idle.
    """

    def __init__(self, app: App, api: RuntimeApi, options: Options) -> None:
        self._app = app
        self._api = api
        self._options = options
        self._memory = Memory(options.memory_bytes)
        self._busy = 0
        self._waiting: set[asyncio.Task[Invocation]] = set()
        self._stopping = asyncio.Event()
        self._failure: BaseException | None = None

    async def run(self, app_exit: asyncio.Future[None]) -> None:
        """Serve events until a failure. Raises OSError if the Runtime API fails, SystemExit if the app must end.

        `app_exit` is done once a task that the app has created has raised SystemExit.
        """
        app_exit.add_done_callback(lambda _: self._stop(SystemExit(1)))
        pollers = [asyncio.create_task(self._poll()) for _ in range(self._options.concurrency)]
        try:
            await asyncio.wait(pollers)
        except asyncio.CancelledError:
            for poller in pollers:
                poller.cancel()
            await asyncio.wait(pollers)
            raise
        if self._failure:
            raise self._failure

    async def _poll(self) -> None:
        while await self._may_poll():
            try:
                await self._serve_next()
            except (Exception, SystemExit) as failure:  # noqa: BLE001  # SystemExit would leave the event loop
                self._stop(failure)

    async def _serve_next(self) -> None:
        try:
            if invocation := await self._next():
                await serve(self._app, self._api, invocation, self._options)
        finally:
            self._busy -= 1

    async def _may_poll(self) -> bool:
        """Wait while the memory is over its limit. Returns False once the process ends."""
        while not self._stopping.is_set():
            if not self._busy or not self._memory.is_over():
                self._busy += 1
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), MEMORY_SECONDS)
        return False

    async def _next(self) -> Invocation | None:
        """Request an event. Returns None if the requests are stopped before it arrives."""
        request = asyncio.create_task(self._api.next(lambda: self._waiting.discard(request)))
        self._waiting.add(request)
        try:
            return await request
        except asyncio.CancelledError:
            # Cancelled itself (SIGTERM), or only its request, which `_stop` withdraws.
            if (poller := asyncio.current_task()) and poller.cancelling():
                raise
            return None
        finally:
            self._waiting.discard(request)

    def _stop(self, failure: BaseException) -> None:
        """Request no more events, and withdraw the requests that Lambda has not begun to answer."""
        if self._failure is None:
            self._failure = failure
            requests = list(self._waiting)
            running = self._busy - len(requests)
            message = f"The process ends after its {running} running invocations."
            log("WARNING", message, errorType=type(failure).__name__)
            self._stopping.set()
            for request in requests:
                request.cancel()
