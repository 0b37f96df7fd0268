"""Program that runs ministack on a listening socket from its parent, and stops when the parent has ended.

It is started with the interpreter of `.venv-ministack`, so it imports only those modules of this project that need
nothing but the standard library. Its arguments are a file descriptor and the seconds between two saves of changes, 0 if
nothing is kept. Standard input is a pipe that the parent holds open: its end means that the parent has ended, for
whatever reason. uvicorn then runs its shutdown, in which ministack saves its state. The exit code is 1 if that failed,
which ministack only logs. ministack's own server, hypercorn, takes about twice the CPU time for a request.
"""

import importlib
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import uvicorn
from infra.local.engine_saver import EngineSaver, Failures
from infra.local.web_pages import Receive, Scope, Send, refuse_web_pages


@refuse_web_pages
async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve ministack with a check of Host and Origin; ministack itself allows every origin."""
    await load_app()(scope, receive, send)


@cache
def load_app() -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Import ministack, and let it check the syntax of each condition once.

    It would check that again for each record of a Query, for two thirds of the time that a Query takes.
    """
    loaded: Callable[[Scope, Receive, Send], Awaitable[None]] = importlib.import_module("ministack.app").app
    dynamodb: Any = importlib.import_module("ministack.services.dynamodb")
    dynamodb._condition_syntax_error = lru_cache(1_000)(dynamodb._condition_syntax_error)
    replace_scheduler(importlib.import_module("ministack.services.scheduler"))
    return loaded


def replace_scheduler(scheduler: Any) -> None:
    """Stop ministack's clock, for which there is `schedules.py`, and refuse unknown time zones, as Scheduler does."""
    create = scheduler._create_schedule

    def create_in_zone(name: str, body: dict[str, Any]) -> Any:
        zone = body.get("ScheduleExpressionTimezone", "UTC")
        try:
            ZoneInfo(zone)
        except (ValueError, OSError, KeyError):  # KeyError: there is no such zone
            return scheduler._error(400, "ValidationException", f"Invalid Schedule Expression Timezone {zone}.")
        return create(name, body)

    scheduler._create_schedule = create_in_zone
    scheduler.start_scheduler = lambda: None


def stop_at_end_of_input(server: uvicorn.Server, failures: Failures) -> None:
    while os.read(0, 1024):
        pass
    failures.attach()
    server.should_exit = True


def main() -> None:
    descriptor, save_seconds = int(sys.argv[1]), float(sys.argv[2])
    config = uvicorn.Config(
        EngineSaver(app, save_seconds) if save_seconds else app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        date_header=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    failures = Failures()
    threading.Thread(target=stop_at_end_of_input, args=(server, failures), daemon=True).start()
    server.run(sockets=[socket.socket(fileno=descriptor)])
    if failures.count or getattr(server.lifespan, "error_occurred", False):
        sys.exit(1)


if __name__ == "__main__":
    main()
