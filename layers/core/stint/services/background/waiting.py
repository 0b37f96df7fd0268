"""Waiting for what another worker has, or had when it died."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stint.domain.errors import Conflict, Interrupted

T = TypeVar("T")

PAUSE_SECONDS = 1.0

LOCKED = ("session_locked", "conversation_locked")
LOCKED_SECONDS = 60.0
"""How long work in the background waits at least for a session or a conversation that is in use."""


async def acquire_or_wait(
    acquire: Callable[[], T], held_until: Callable[[], int | None], busy: str, pause: float, deadline: float
) -> T | None:
    """Acquire a lease once its holder lets it lapse; return None as soon as the holder is seen to renew it.

    `acquire` raises a Conflict of the code `busy` while the lease is held; `held_until` returns its end.

    Raises:
        Interrupted: there was no time to see whether the holder lives.
    """
    clock, seen = asyncio.get_running_loop().time, None
    while True:
        try:
            return await asyncio.to_thread(acquire)
        except Conflict as conflict:
            if conflict.code != busy:
                raise
            message = conflict.message
        found = await asyncio.to_thread(held_until)
        if seen is not None and found != seen:
            return None
        seen = found
        if clock() + pause >= deadline:
            raise Interrupted(message)
        await asyncio.sleep(pause)


async def retry_while_locked(begin: Callable[[], Awaitable[T]], patience: float, deadline: float) -> T:
    """Begin something as soon as the session or conversation that it needs is free, if that is not too late."""
    clock = asyncio.get_running_loop().time
    given_up = min(clock() + patience, deadline)
    while True:
        try:
            return await begin()
        except Conflict as conflict:
            if conflict.code not in LOCKED or clock() + PAUSE_SECONDS >= given_up:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
