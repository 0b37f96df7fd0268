"""Saves the state of ministack while it runs, so that the death of its process costs at most one interval.

ministack saves only when it stops. A save in its process would stop all requests for as long as it takes, so a fork of
the process saves: it has the memory of one moment between two requests, and shares its pages. ministack writes each
service's file beside the old one and renames it, so a fork that dies leaves the old file. A fork that hangs, because a
thread held a lock at that moment, is ended by its alarm. A fork is killed before the state is saved at the end.
"""

import asyncio
import contextlib
import importlib
import logging
import os
import signal
from typing import Any

from infra.local.web_pages import App, Message, Receive, Scope, Send

ALARM_SECONDS = 20
READS = ("Get", "BatchGet", "TransactGet", "Query", "Scan", "List", "Describe", "ReceiveMessage")


def changes_state(scope: Scope) -> bool:
    """Return whether a request may change what is stored. A queue's polls do not count."""
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
        return False
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return not target.rpartition(".")[2].startswith(READS)


class Failures(logging.Handler):
    """Counts the services whose state was not saved, which ministack only logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, _: logging.LogRecord) -> None:
        self.count += 1

    def attach(self) -> None:
        logging.getLogger("persistence").addHandler(self)


class EngineSaver:
    """Middleware that saves the state every `seconds` while requests change it."""

    def __init__(self, app: App, seconds: float) -> None:
        self.app = app
        self.seconds = seconds
        self.is_changed = False
        self.task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_or_stop() -> Message:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.stop()
            return message

        if scope["type"] == "lifespan":
            self.task = asyncio.create_task(self.save_changes())
        await self.app(scope, receive_or_stop, send)
        self.is_changed |= changes_state(scope)

    async def stop(self) -> None:
        """Kill a running save, because ministack is about to save everything."""
        if self.task:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task

    async def save_changes(self) -> None:
        while True:
            await asyncio.sleep(self.seconds)
            if self.is_changed:
                self.is_changed = False
                is_saved = await save_in_fork()
                self.is_changed |= not is_saved


async def save_in_fork() -> bool:
    """Save the state in a fork of this process. Return whether all of it was saved."""
    pid = os.fork()
    if pid == 0:
        save_and_exit()
    try:
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise
    return status == 0


def save_and_exit() -> None:
    """Save the state, and end without a cleanup: connections and files belong to the process that was forked."""
    failures = Failures()
    try:
        signal.alarm(ALARM_SECONDS)
        failures.attach()
        app: Any = importlib.import_module("ministack.app")
        persistence: Any = importlib.import_module("ministack.core.persistence")
        persistence.save_all(app._build_persistence_save_dict())
    except BaseException:  # noqa: BLE001 - nothing may run on in the fork
        os._exit(1)
    os._exit(1 if failures.count else 0)
