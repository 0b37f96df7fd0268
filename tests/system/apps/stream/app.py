"""App that streams in the way that the last segment of the path names."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Send = Callable[[dict[str, Any]], Awaitable[None]]


async def app(scope: dict[str, Any], receive: Any, send: Send) -> None:
    await ACTIONS[scope["path"].rpartition("/")[2]](send)


async def start(send: Send, *headers: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": 201, "headers": [(b"content-type", b"text/x"), *headers]})


async def part(send: Send, body: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def slowly(send: Send) -> None:
    await start(send, (b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"))
    for word in (b"one ", b"two ", b"three"):
        await part(send, word)
        await asyncio.sleep(0.2)
    await part(send, b"", more=False)
    (Path(os.environ["STINT_MARK_FOLDER"]) / "streamed-to-the-end").touch()


async def step_by_step(send: Send) -> None:
    """Send words, each once the test has created a file for the previous one."""
    await start(send)
    for word in ("one", "two", "three"):
        await part(send, word.encode())
        while not (Path(os.environ["STINT_MARK_FOLDER"]) / word).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
    await part(send, b"", more=False)


async def fail_early(send: Send) -> None:
    raise RuntimeError("before the first byte")


async def fail_late(send: Send) -> None:
    await start(send)
    await part(send, b"begun")
    await asyncio.sleep(0.1)
    os._exit(1)


async def stall(send: Send) -> None:
    await start(send)
    await part(send, b"begun")
    await asyncio.sleep(3)


async def long_prelude(send: Send) -> None:
    await start(send, (b"x-long", b"x" * 17_000))
    await part(send, b"unseen", more=False)


ACTIONS = {
    "slowly": slowly,
    "step-by-step": step_by_step,
    "fail-early": fail_early,
    "fail-late": fail_late,
    "stall": stall,
    "long-prelude": long_prelude,
}
