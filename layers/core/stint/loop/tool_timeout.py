"""Run tools that may not end when they are cancelled."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from stint.domain.errors import ToolUnavailable

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""Seconds that a cancelled tool has to clean up, less than the time that a run reserves for its last event."""

left: set[asyncio.Task[Any]] = set()
"""Tasks that did not end. The event loop has only weak references to them."""


async def run_with_grace(coroutine: Coroutine[Any, Any, T], extra: Mapping[str, str]) -> T:
    """Await a coroutine in a task. After a cancellation, wait a short time whether or not the coroutine ends.

    A coroutine that continues is logged with `extra` and abandoned.

    Raises:
        ToolUnavailable: the coroutine cancelled itself.
    """
    # A task of its own, since `asyncio.timeout` waits for whatever it cancels, and a tool may swallow the cancellation.
    task = asyncio.create_task(coroutine)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        left.add(task)
        task.add_done_callback(forget)
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        if not task.done():
            logger.error("A tool did not end after its timeout; it is abandoned", extra=dict(extra))
        raise
    if task.cancelled():
        raise ToolUnavailable("The tool was cancelled.")
    return task.result()


def forget(task: asyncio.Task[Any]) -> None:
    """Drop the reference to a task that has ended, and ignore its result."""
    left.discard(task)
    if not task.cancelled():
        task.exception()
