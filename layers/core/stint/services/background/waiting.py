"""Waiting for leases of other workers, which may have died."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stint.domain.errors import LOCKED, Conflict, Interrupted
from stint.loop.model_call import with_deadline

T = TypeVar("T")

PAUSE_SECONDS = 1.0

LOCKED_SECONDS = 60.0
"""Minimum seconds that background work waits for a session or a conversation in use."""


async def acquire_or_wait(
    acquire: Callable[[], Awaitable[T]],
    held_until: Callable[[], Awaitable[int | None]],
    busy: str,
    pause: float,
    deadline: float,
) -> T | None:
    """Acquire a lease after it lapses; return None as soon as its holder renews it.

    `acquire` raises a Conflict with the code `busy` while the lease is held. `held_until` returns its end.

    Raises:
        Interrupted: there was no time to find out whether the holder is alive.
    """
    clock, seen = asyncio.get_running_loop().time, None
    while True:
        try:
            return await acquire()
        except Conflict as conflict:
            if conflict.code != busy:
                raise
            message = conflict.message
        found = await held_until()
        if seen is not None and (found is None or found > seen):
            return None
        seen = found
        if clock() + pause >= deadline:
            raise Interrupted(message)
        await asyncio.sleep(pause)


async def retry_while_locked(begin: Callable[[], Awaitable[T]], lock_wait_seconds: float, deadline: float) -> T:
    """Retry a start while its session or conversation is in use, until the deadline."""
    clock = asyncio.get_running_loop().time
    until = min(clock() + lock_wait_seconds, deadline)
    while True:
        try:
            return await begin()
        except Conflict as conflict:
            if conflict.code not in LOCKED or clock() + PAUSE_SECONDS >= until:
                raise
        await with_deadline(deadline, asyncio.sleep(PAUSE_SECONDS))
