"""Start the runtime: load the app, then serve events until the process is stopped.

    load       in the init phase, outside of the event loop; a failure is reported to /init/error
    start      the app's startup, which has more CPU in the init phase than a small function has later
    freeze     objects of modules are taken out of the garbage collector, which was off until then
    restore    SnapStart only: the process waits here while a snapshot of it is taken and restored
    serve      one event at a time (`loop.py`), or several (`pollers.py`)

A SystemExit must end the process, but after the running invocations. asyncio lets a SystemExit of any task leave the
event loop, so the loop is entered again, and `app_exit` tells the runtime's own task to end.

The process ends with os._exit: the app may have threads that never end, and what Lambda must know was reported before.
"""

import asyncio
import gc
import importlib
import io
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

from stint_runtime.client import RuntimeApi
from stint_runtime.errors import FunctionError, InitError, log_failure
from stint_runtime.exchange import App, Message
from stint_runtime.loop import end_process, run
from stint_runtime.options import Options, read_options
from stint_runtime.snapstart import wait_for_restore

_SPARE_THREADS = 4
_MOST_THREADS = 64
_STARTUP_SECONDS = 5.0
"""Seconds to wait for the startup, of the ten of the init phase. A slower startup continues during the first event."""


def main() -> int:
    """Run until SIGTERM, and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A frozen process would not flush its buffered log lines.
        sys.stdout.reconfigure(line_buffering=True)
    gc.disable()  # objects of modules are permanent: collections take a sixth of a start and free nothing
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        options = read_options(os.environ)
        app = load(os.environ["_HANDLER"])
    except InitError as exception:
        log_failure(exception.error, None)
        asyncio.run(api.fail_init(exception.error))
        return 1
    return _run(app, api, options)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop, which takes about a tenth less CPU for a turn, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - the runtime is also used without it
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _run(app: App, api: RuntimeApi, options: Options) -> NoReturn:
    """Run the event loop. SystemExit in a task of the app leaves it: note it, and go on with the other tasks."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        app_exit: asyncio.Future[None] = runner.get_loop().create_future()
        serving = runner.get_loop().create_task(_serve(app, api, options, app_exit))
        while True:
            try:
                runner.run(_joined(serving))
            except SystemExit:
                if not app_exit.done():
                    app_exit.set_result(None)


async def _joined(task: asyncio.Task[NoReturn]) -> None:
    await task


async def _serve(app: App, api: RuntimeApi, options: Options, app_exit: asyncio.Future[None]) -> NoReturn:
    task = asyncio.create_task(_exit_code(app, api, options, app_exit))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    code = await task
    sys.stdout.flush()
    sys.stderr.flush()
    # A regular exit would wait for the app's threads, and for tasks that ignore their cancellation.
    os._exit(code)


async def _exit_code(app: App, api: RuntimeApi, options: Options, app_exit: asyncio.Future[None]) -> int:
    """Run until the process must end. SystemExit is caught in this task: it would stop the event loop."""
    try:
        await _loop(app, api, options, app_exit)
    except asyncio.CancelledError:
        return 0  # SIGTERM: the running invocations have been reported
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) and exit_.code else 1
    except Exception as exception:  # noqa: BLE001  # whatever it is, the process ends
        reason = "Runtime.ApiError" if isinstance(exception, OSError) else None
        log_failure(FunctionError.of(exception, reason), None)
    return 1


async def _loop(app: App, api: RuntimeApi, options: Options, app_exit: asyncio.Future[None]) -> None:
    if options.concurrency > 1:
        _prepare_for_many(options.concurrency)
    await start(app)
    gc.freeze()
    gc.enable()
    if app_exit.done():
        end_process()
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        await wait_for_restore(api)
    if options.concurrency == 1:
        await run(app, api, options, app_exit)
    else:
        from stint_runtime.pollers import Pollers  # noqa: PLC0415 - plain Lambda does not need it

        await Pollers(app, api, options).run(app_exit)


def _prepare_for_many(concurrency: int) -> None:
    """Set up the event loop for many invocations: threads for all of them, and log lines with their ids.

    asyncio's own executor has four threads more than the machine has processors.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - plain Lambda loads it when first used

    from stint_runtime.pollers import install_json_logs  # noqa: PLC0415 - plain Lambda does not need it

    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(min(concurrency + _SPARE_THREADS, _MOST_THREADS), "asyncio"))
    install_json_logs()


class HandlerError(InitError):
    """The app cannot be loaded; the error has one of the managed runtime's reasons."""


def load(handler: str) -> App:
    """Import the app with the name `module.attribute` or `folder/module.attribute`. Raises HandlerError."""
    module_name, dot, attribute = handler.rpartition(".")
    if not dot:
        raise _failure("Runtime.MalformedHandlerName", f"Bad handler '{handler}': not module.attribute.")
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except BaseException as error:
        raise HandlerError(_import_error(error, module_name)) from error
    app = getattr(module, attribute, None)
    if not callable(app):
        raise _failure(
            "Runtime.HandlerNotFound", f"Handler '{attribute}' is missing in module '{module_name}' or not an ASGI app."
        )
    return app  # type: ignore[no-any-return]  # whether it is an ASGI app only shows when it is called


def _import_error(error: BaseException, module_name: str) -> FunctionError:
    reasons = {ImportError: "Runtime.ImportModuleError", SyntaxError: "Runtime.UserCodeSyntaxError"}
    reason = next((reasons[kind] for kind in reasons if isinstance(error, kind)), None)
    found = FunctionError.of(error, reason)
    message = f"Unable to import module '{module_name}': {found.message}"
    return FunctionError(found.reason, reason or found.type, message, found.stack)


def _failure(reason: str, message: str) -> HandlerError:
    return HandlerError(FunctionError(reason, reason, message))


async def start(app: App) -> None:
    """Send an app the startup event, and wait until it is ready.

    An app without lifespan events is ready at once. The failure of an app is logged, but the app still gets events: it
    may respond to each of them with an error.

    https://asgi.readthedocs.io/en/latest/specs/lifespan.html
    """
    ready = asyncio.Event()
    begun = False

    async def receive() -> Message:
        nonlocal begun
        if begun:
            await asyncio.Event().wait()  # the process is frozen or killed, without a shutdown event
        begun = True
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            log_failure(FunctionError("Runtime.StartupFailed", "StartupFailed", str(message.get("message", ""))), None)
        ready.set()

    async def live() -> None:
        try:
            with suppress(Exception):  # an app may refuse the scope with any exception
                await app({"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}, receive, send)
        finally:
            ready.set()

    task = asyncio.create_task(live())
    _running.add(task)
    # `live` continues after the timeout: the first event then waits in the app, and not here.
    with suppress(TimeoutError):
        await asyncio.wait_for(ready.wait(), _STARTUP_SECONDS)


_running: set[asyncio.Task[None]] = set()
"""The lifespan tasks of the apps; the event loop itself keeps only weak references."""


if __name__ == "__main__":
    sys.exit(main())
