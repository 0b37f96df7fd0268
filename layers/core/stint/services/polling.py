"""Repeated reads of a state that another process changes."""

import asyncio
from collections.abc import AsyncIterator

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0


async def poll(seconds: float) -> AsyncIterator[None]:
    """Yield after pauses that grow, until `seconds` have passed."""
    clock = asyncio.get_running_loop().time
    until, pause = clock() + seconds, FIRST_PAUSE
    while clock() < until:
        await asyncio.sleep(pause)
        yield
        pause = min(2 * pause, LONGEST_PAUSE)
