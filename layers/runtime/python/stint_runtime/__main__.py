"""Start the runtime: load the app, then serve events until the process is stopped."""

import asyncio
import gc
import io
import os
import signal
import sys

from stint_runtime.client import RuntimeApi
from stint_runtime.errors import FunctionError, log_failure
from stint_runtime.exchange import App
from stint_runtime.handler import HandlerError, load
from stint_runtime.loop import Options, run
from stint_runtime.snapstart import wait_for_restore
from stint_runtime.startup import start


def main() -> int:
    """Run until SIGTERM, and return the exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A frozen process would not flush its buffered log lines.
        sys.stdout.reconfigure(line_buffering=True)
    gc.disable()  # objects of modules are permanent: collections take a sixth of a start and free nothing
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    try:
        app = load(os.environ["_HANDLER"])
    except HandlerError as exception:
        log_failure(exception.error, None)
        asyncio.run(api.fail_init(exception.error))
        return 1
    try:
        asyncio.run(_serve(app, api))
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) and exit_.code else 1
    except OSError as exception:
        log_failure(FunctionError.of(exception, "Runtime.ApiError"), None)
        return 1
    return 0


async def _serve(app: App, api: RuntimeApi) -> None:
    task = asyncio.create_task(_loop(app, api))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        # SIGTERM: a running invocation has already been reported.
        return


async def _loop(app: App, api: RuntimeApi) -> None:
    await start(app)
    gc.freeze()
    gc.enable()
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start":
        await wait_for_restore(api)
    timeout = os.environ.get("STREAM_ROUTE_TIMEOUT_SECONDS")
    options = Options(round(float(timeout) * 1000) if timeout else None, buffered=bool(os.environ.get("AWS_SAM_LOCAL")))
    await run(app, api, options)


if __name__ == "__main__":
    sys.exit(main())
