"""Concurrent calls that wait for the network.

All calls end before an error is raised. Otherwise a write would go on after its request had failed, and might take
effect after the deletion or the repetition that follows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R")

CALLS = 8
"""Maximum concurrent calls, by default."""


async def map_concurrently(do: Callable[[A], Awaitable[R]], over: Sequence[A], calls: int = CALLS) -> list[R]:
    """Call a function with each argument concurrently, and return the results in order.

    Raises the first exception in order after all calls have ended.
    """
    if len(over) < 2:
        return [await do(one) for one in over]
    # Tasks cost little; only their calls are limited.
    places = asyncio.Semaphore(calls)

    async def run(one: A) -> R:
        async with places:
            return await do(one)

    # Exceptions as results: otherwise the first one would be raised while other calls still run.
    results = await asyncio.gather(*map(run, over), return_exceptions=True)
    return [value_of(result) for result in results]


async def gather_both(one: Awaitable[A], other: Awaitable[B]) -> tuple[A, B]:
    """Await two results concurrently. Raises the first exception in order after both calls have ended."""
    first, second = await asyncio.gather(one, other, return_exceptions=True)
    return value_of(first), value_of(second)


def value_of(outcome: A | BaseException) -> A:
    """Return a result of `asyncio.gather`, or raise its exception."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
