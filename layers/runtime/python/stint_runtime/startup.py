"""The app's startup before the first event. Lambda's init phase has more CPU than a small function has later."""

import asyncio
from contextlib import suppress

from stint_runtime.errors import FunctionError, log_failure
from stint_runtime.exchange import App, Message

SECONDS = 5.0
"""Seconds to wait for the startup, of the ten of the init phase. A slower startup continues during the first event."""


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
        await asyncio.wait_for(ready.wait(), SECONDS)


_running: set[asyncio.Task[None]] = set()
"""The lifespan tasks of the apps; the event loop itself keeps only weak references."""
