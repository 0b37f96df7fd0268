"""A plain ASGI app whose behaviour the first path segment selects."""

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BACKGROUND: list[str] = []
TASKS: list[asyncio.Task[None]] = []


async def app(scope: Message, receive: Receive, send: Send) -> None:
    route = scope["path"].removeprefix(scope["root_path"]).split("/")[1]
    await ROUTES[route](scope, receive, send)


async def start(send: Send, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def body(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def gate(scope: Message, name: str) -> None:
    """Notify the test that this point is reached, and wait until it opens the gate."""
    port = int(dict(scope["headers"])[b"x-gate"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{name}\n".encode())
    await reader.read(1)
    writer.close()


async def ignore(_message: Message) -> None:
    """Send nothing."""


async def echo(scope: Message, receive: Receive, send: Send) -> None:
    request = await receive()
    context = scope["aws.context"]
    seen = {
        "pid": os.getpid(),
        "method": scope["method"],
        "path": scope["path"],
        "raw_path": scope["raw_path"].decode(),
        "root_path": scope["root_path"],
        "query": scope["query_string"].decode(),
        "headers": [[name.decode(), value.decode("latin-1")] for name, value in scope["headers"]],
        "body": request["body"].hex(),
        "request_id": context.aws_request_id,
        "function_name": context.function_name,
        "arn": context.invoked_function_arn,
        "memory": context.memory_limit_in_mb,
        "remaining": context.get_remaining_time_in_millis(),
        "trace": os.environ.get("_X_AMZN_TRACE_ID"),
        "environment": sorted(os.environ),
        "sys_path": sys.path,
        "background": BACKGROUND,
    }
    await start(send, 200, (b"content-type", b"application/json"))
    await body(send, json.dumps(seen).encode(), more=False)


async def steps(scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 200, (b"content-type", b"text/plain"))
    for index in range(3):
        await body(send, f"{time.monotonic_ns()} ".encode())
        await gate(scope, f"step {index}")
    await body(send, b"", more=False)


async def cookies(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 201, (b"set-cookie", b"a=1"), (b"Set-Cookie", b"b=2"), (b"x-name", "Zoë".encode("latin-1")))
    await body(send, b"\x00\xff", more=False)


async def empty(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 204)
    await body(send, b"", more=False)


async def head(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 200, (b"content-length", b"5"))
    await body(send, b"hello", more=False)


async def fail_first(_scope: Message, _receive: Receive, _send: Send) -> None:
    raise ValueError("nothing was sent")


async def fail_after_start(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    raise ValueError("no byte was sent")


async def fail_later(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"first")
    raise ValueError("in the middle")


async def silent(_scope: Message, _receive: Receive, _send: Send) -> None:
    return


async def unfinished(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"first")


async def too_long(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 200, (b"content-length", b"3"))
    await body(send, b"four", more=False)


async def too_short(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 200, (b"content-length", b"5"))
    await body(send, b"four", more=False)


async def headless(_scope: Message, _receive: Receive, send: Send) -> None:
    await body(send, b"no head", more=False)


async def heavy_head(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send, 200, (b"x-heavy", b"x" * 17_000))
    await body(send, b"", more=False)


async def leave(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"bye")
    sys.exit(0)


async def leave_in_group(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"bye")
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(leave(_scope, _receive, ignore))


async def leave_in_gather(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"bye")
    await asyncio.gather(asyncio.sleep(60), leave(_scope, _receive, ignore))


async def leave_unawaited(scope: Message, receive: Receive, send: Send) -> None:
    """Respond, and leave in a task whose outcome nobody asks for, as soon as the test opens the gate."""

    async def leave_later() -> None:
        await gate(scope, "leave")
        await leave(scope, receive, ignore)

    TASKS.append(asyncio.create_task(leave_later()))
    await start(send)
    await body(send, b"first ")
    await gate(scope, "answer")
    await body(send, b"second", more=False)


async def hang(_scope: Message, _receive: Receive, _send: Send) -> None:
    await asyncio.Event().wait()


async def hang_later(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"first ")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await body(send, b"last word")
        raise


async def stubborn(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"first")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def freeze(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    await body(send, b"first")
    time.sleep(60)  # noqa: ASYNC251  # only Lambda's time-out ends a blocked event loop


async def late_work(scope: Message, receive: Receive, send: Send) -> None:
    await receive()
    await start(send)
    await body(send, b"done", more=False)
    disconnect = await receive()
    await gate(scope, "late work")
    BACKGROUND.append(disconnect["type"])


async def early_disconnect(scope: Message, receive: Receive, send: Send) -> None:
    await receive()
    waiting = asyncio.ensure_future(receive())
    await start(send)
    await body(send, b"before ")
    await gate(scope, "waiting")
    await body(send, f"disconnected: {waiting.done()}".encode(), more=False)
    await waiting


async def flood(_scope: Message, _receive: Receive, send: Send) -> None:
    await start(send)
    for _ in range(200):
        await body(send, bytes(64 * 1024))
    await body(send, b"", more=False)


async def spawn(_scope: Message, _receive: Receive, send: Send) -> None:
    process = await asyncio.create_subprocess_exec("sleep", "600")
    await start(send)
    await body(send, json.dumps([os.getpid(), process.pid]).encode(), more=False)


ROUTES = {
    name.replace("_", "-"): value
    for name, value in list(globals().items())
    if inspect.iscoroutinefunction(value) and name not in {"app", "start", "body", "gate", "ignore"}
}
