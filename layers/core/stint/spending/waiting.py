"""Budgets of runs that wait for the next minute, in the worker, and of messages that waited for a running run."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stint.domain.errors import QuotaExceeded, RateLimitExceeded
from stint.loop.model_call import with_deadline
from stint.metering import admit_run

T = TypeVar("T")


async def retry_next_minute(attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
    """Return the result of an attempt, which is repeated in the next minute while the budgets of this one refuse it.

    `deadline` is a time of the event loop's clock.

    Raises:
        RateLimitExceeded: there is no time for that.
        Stopped: an admin stopped the run while it waited.
    """
    clock = asyncio.get_running_loop().time
    while True:
        try:
            return await attempt()
        except RateLimitExceeded as refused:
            if clock() + refused.retry_after >= deadline:
                raise
            await with_deadline(deadline, asyncio.sleep(refused.retry_after))


async def admit_message() -> bool:
    """Count a message that the current run takes as a request, and return whether the caller's budgets allow that."""
    try:
        await admit_run()
    except (RateLimitExceeded, QuotaExceeded):
        return False
    return True
