"""Waiting for conditions that are read from the store."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def poll_until(condition: Callable[[], Awaitable[Any]], seconds: float = 30) -> None:
    """Wait until an awaited condition is true."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110 - the condition is changed outside of this loop
            await asyncio.sleep(0.005)
