"""An ASGI app for a process that runs many invocations at once."""

import asyncio
import inspect
import json
import logging
import os
import threading
import warnings

from tests.runtime.apps.streams import Message, Receive, Send, body, gate, start
from tests.runtime.apps.streams import app as streams

from stint_runtime.context import current_context

HELD: list[bytearray] = []


async def app(scope: Message, receive: Receive, send: Send) -> None:
    route = scope["path"].split("/")[1]
    await ROUTES.get(route, streams)(scope, receive, send)


async def two(scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"one ")
    await gate(scope, "between")
    await body(send, b"two", more=False)


async def seen(scope: Message, _receive: Receive, send: Send) -> None:
    await gate(scope, "before")
    context = scope["aws.context"]
    found = {
        "request_id": context.aws_request_id,
        "trace": context.xray_trace_id,
        "current": [name_of_current(), await asyncio.to_thread(name_of_current)],
        "environment": os.environ.get("_X_AMZN_TRACE_ID"),
        "pid": os.getpid(),
    }
    await start(send)
    await body(send, json.dumps(found).encode(), more=False)


def name_of_current() -> str | None:
    context = current_context.get()
    return context.aws_request_id if context else None


async def warn(scope: Message, _receive: Receive, send: Send) -> None:
    logging.getLogger("library").warning("before")
    await gate(scope, "between")
    await asyncio.to_thread(logging.getLogger("library").warning, "in %s", "a thread")
    await start(send)
    await body(send, b"", more=False)


async def deprecate(_scope: Message, _receive: Receive, send: Send) -> None:
    warnings.warn("too old", stacklevel=1)
    await start(send)
    await body(send, b"", more=False)


async def hold(scope: Message, _receive: Receive, send: Send) -> None:
    HELD.append(bytearray(os.urandom(1024)) * (64 * 1024))
    await start(send)
    await body(send, b"held")
    await gate(scope, "held")
    HELD.clear()
    await body(send, b"", more=False)


async def threads(scope: Message, _receive: Receive, send: Send) -> None:
    """Wait until all threads of a test are here at once."""
    parties = int(scope["path"].split("/")[2])
    await asyncio.to_thread(BARRIERS.setdefault(parties, threading.Barrier(parties)).wait, 60)
    await start(send)
    await body(send, b"met", more=False)


BARRIERS: dict[int, threading.Barrier] = {}
ROUTES = {
    name: value
    for name, value in list(globals().items())
    if inspect.iscoroutinefunction(value) and value.__module__ == __name__ and name != "app"
}
