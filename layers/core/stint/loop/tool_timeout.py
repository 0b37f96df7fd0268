"""Run tools that may not end when they are cancelled."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from stint.domain.errors import ToolUnavailable

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""How long what is cancelled may still clean up: less than the turn keeps back of its time for the last event."""

left: set[asyncio.Task[Any]] = set()
"""What did not end. The event loop alone would not hold it."""


async def run_with_grace(coroutine: Coroutine[Any, Any, T], extra: Mapping[str, str]) -> T:
    """Await a coroutine in a task of its own; when the wait is cancelled, it ends soon whatever the coroutine does.

    One that goes on is logged with `extra` and left to itself.

    Raises:
        ToolUnavailable: the coroutine cancelled itself.
    """
    task = asyncio.create_task(coroutine)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        left.add(task)
        task.add_done_callback(forget)
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not task.done():
            logger.error("A tool does not end though its time is over; it is left to itself", extra=dict(extra))
        raise
    if task.cancelled():
        raise ToolUnavailable("The tool gave up.")
    return task.result()


def forget(task: asyncio.Task[Any]) -> None:
    """Let go of what has ended after all; what it ended with is of no use to anybody."""
    left.discard(task)
    if not task.cancelled():
        task.exception()
