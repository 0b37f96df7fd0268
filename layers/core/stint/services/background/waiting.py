"""Taking what another worker may hold, and may have died over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from stint.domain.errors import Conflict, Interrupted

T = TypeVar("T")

PAUSE_SECONDS = 1.0

LOCKED = ("session_locked", "conversation_locked")
LOCKED_SECONDS = 60.0
"""How long work in the background waits at least for a session or a conversation that is in use."""


async def take_from_the_dead(
    take: Callable[[], T], held_until: Callable[[], int | None], busy: str, pause: float, deadline: float
) -> T | None:
    """Take something once its holder lets it run out; None as soon as the holder is seen to renew it.

    `take` raises a Conflict of the code `busy` while it is held; `held_until` tells how long, as its holder said last.

    Raises:
        Interrupted: there was no time to see whether the holder lives.
    """
    clock, seen = asyncio.get_running_loop().time, None
    while True:
        try:
            return await asyncio.to_thread(take)
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


async def patiently(begin: Callable[[], Awaitable[T]], patience: float, deadline: float) -> T:
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
