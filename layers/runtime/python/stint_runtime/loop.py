"""The event loop of the runtime: request an event, run the app, respond, request the next event.

Every invocation is reported, whatever the app does, because Lambda otherwise waits for its timeout and then ends the
process:

    the app ends its response                      nothing is added
    it raises, or returns too early                an error: with a status if nothing was sent, else as trailers
    it still runs MARGIN before the deadline       it is cancelled; DeadlineExceeded
    it ignores the cancellation for GRACE          as before, and then the process ends: the app would still run when
                                                   the next event comes
    it raises SystemExit                           an error, and then the process ends
    the process gets SIGTERM                       Stopped is reported, and then the process ends
    the event cannot be read                       an error; the process goes on
    the event is no proxy event                    answered at once, so that warmers need not know this runtime

The deadline is the function's or the route's, whichever is first: after the route's timeout nobody reads the response.
"""

import asyncio
import json
import os
from collections.abc import Coroutine
from typing import Any, NoReturn

from stint_runtime.client import Invocation, RuntimeApi
from stint_runtime.context import LambdaContext, current_context
from stint_runtime.errors import DeadlineExceeded, FunctionError, ResponseIncomplete, Stopped, log, log_failure
from stint_runtime.exchange import App, Exchange
from stint_runtime.memory import Collector
from stint_runtime.options import Options
from stint_runtime.response import BufferedResponse, Response, StreamedResponse
from stint_runtime.scope import Scope, http_scope, is_proxy_event, take_body

# The app is cancelled MARGIN seconds before the deadline, and then has GRACE seconds to finish. What is left is for the
# report of the failure.
MARGIN = 0.5
GRACE = 0.25

_OTHER_EVENT = json.dumps(
    {"message": "This function serves Amazon API Gateway REST proxy events; it did nothing with this event."}
).encode()


async def run(app: App, api: RuntimeApi, options: Options, app_exit: asyncio.Future[None]) -> None:
    """Serve events, one at a time. Raises OSError if the Runtime API fails, SystemExit if the app raises it.

    `app_exit` is done once a task that the app has created has raised SystemExit. A request for an event is not
    withdrawn then: a frozen process continues only because an event has arrived.
    """
    collector = Collector(options.function_bytes)
    while not app_exit.done():
        invocation = await api.next()
        _set_trace_id(invocation)
        await serve(app, api, invocation, options)
        collector.collect()  # after the last byte, so that no client waits for it
    end_process()


def end_process() -> NoReturn:
    """Raise SystemExit because a task that the app has created has raised it."""
    log("WARNING", "A task of the app raised SystemExit. The process ends.", errorType="SystemExit")
    raise SystemExit(1)


def _set_trace_id(invocation: Invocation) -> None:
    trace_id = invocation.headers.get("lambda-runtime-trace-id")
    if trace_id:
        os.environ["_X_AMZN_TRACE_ID"] = trace_id
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)


async def serve(app: App, api: RuntimeApi, invocation: Invocation, options: Options) -> None:
    """Run the app for one event and respond. Raises SystemExit if the process must end."""
    response = (BufferedResponse if options.buffered else StreamedResponse)(api, invocation)
    request: tuple[Scope, Exchange] | None = None
    try:
        context = LambdaContext(invocation, os.environ, options.route_timeout_ms)
        current_context.set(context)
        event = json.loads(invocation.take_payload())
        if is_proxy_event(event):
            request = http_scope(event, context), Exchange(event["httpMethod"].upper(), take_body(event), response)
    except Exception as exception:  # noqa: BLE001  # no event, however malformed, may end the process
        error = FunctionError.of(exception, "Runtime.UnmarshalError")
        log_failure(error, invocation.request_id)
        await api.fail(invocation, error)
        return
    if request is None:
        await api.respond(invocation, _OTHER_EVENT)
    else:
        await _run_app(app, *request, response)


async def _run_app(app: App, scope: Scope, exchange: Exchange, response: Response) -> None:
    context: LambdaContext = scope["aws.context"]
    task = asyncio.create_task(_outcome(app, scope, exchange))
    try:
        failure = await _before_deadline(task, context)
    except asyncio.CancelledError:
        await _cancel(task)
        # Nothing is lost if only what the app does after its response was stopped.
        failure = None if exchange.complete else Stopped("The process received a signal to end.")
        await _finish(exchange, response, failure, context)
        raise
    # A signal that arrives here must not cut a response whose app has ended.
    await _uncancelled(_finish(exchange, response, failure, context))
    if isinstance(failure, SystemExit | KeyboardInterrupt) or not task.done():
        raise SystemExit(1)


async def _outcome(app: App, scope: Scope, exchange: Exchange) -> BaseException | None:
    """Run the app, and return its exception: a SystemExit that leaves a task would stop the event loop."""
    try:
        await app(scope, exchange.receive, exchange.send)
    except BaseException as exception:  # noqa: BLE001  # the edge: every failure of the app is reported
        return exception
    return None if exchange.complete else ResponseIncomplete("The app returned before its response was complete.")


async def _before_deadline(task: asyncio.Task[BaseException | None], context: LambdaContext) -> BaseException | None:
    seconds = context.get_remaining_time_in_millis() / 1000 - MARGIN
    await asyncio.wait({task}, timeout=max(0.0, seconds))
    if task.done():
        return task.result()
    await _cancel(task)
    return DeadlineExceeded(f"The app was still running {MARGIN} s before the deadline and was cancelled.")


async def _uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Await the end of a response. A signal to end leaves it a moment to be sent."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=GRACE)
        raise


async def _cancel(task: asyncio.Task[BaseException | None]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)


async def _finish(
    exchange: Exchange, response: Response, failure: BaseException | None, context: LambdaContext
) -> None:
    """Log a failure, and end the response if the app has not."""
    if failure:
        error = FunctionError.of(failure)
        log_failure(error, context.aws_request_id)
        if not exchange.complete:
            exchange.end()
            await response.fail(error)
    await response.close()
