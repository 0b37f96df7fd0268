"""The app's start, before the first event: Lambda's init phase has more CPU than a small function ever has again."""

import asyncio
from contextlib import suppress

from stint_runtime.errors import FunctionError, log_failure
from stint_runtime.exchange import App, Message

SECONDS = 5.0
"""The init phase has ten; what has not started by then is left to the first event."""


async def start(app: App) -> None:
    """Tell an app that the process starts, and wait until it says it is ready.

    An app without lifespan events is ready at once; one that fails to start is logged, and gets its events all the
    same: it may fail each of them with an answer.

    https://asgi.readthedocs.io/en/latest/specs/lifespan.html
    """
    ready = asyncio.Event()
    begun = False

    async def receive() -> Message:
        nonlocal begun
        if begun:
            await asyncio.Event().wait()  # the process is frozen or killed, never shut down
        begun = True
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        if message["type"] == "lifespan.startup.failed":
            log_failure(FunctionError("Runtime.StartupFailed", "StartupFailed", str(message.get("message", ""))), None)
        ready.set()

    async def live() -> None:
        with suppress(Exception):  # an app may refuse the scope by raising whatever it likes
            await app({"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}, receive, send)
        ready.set()

    task = asyncio.create_task(live())
    _running.add(task)
    with suppress(TimeoutError):
        await asyncio.wait_for(ready.wait(), SECONDS)


_running: set[asyncio.Task[None]] = set()
"""Apps live in their lifespan; the event loop itself keeps only weak references."""
