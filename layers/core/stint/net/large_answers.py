"""Large answers of servers are read one at a time: each takes many times its size while it is parsed."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LARGE = 100_000
"""Bytes after which the rest of an answer waits for its turn."""


class Turn:
    """The turn of one piece of work. It begins with its first large answer and lasts until the work is over."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._shared = lock
        self._own = asyncio.Lock()
        self._held = self._over = False

    async def take(self) -> None:
        """Wait until no other work has the turn."""
        async with self._own:
            if self._held or self._over:
                return
            await self._shared.acquire()
            self._held = True
            if self._over:
                self.end()

    def end(self) -> None:
        self._over = True
        if self._held:
            self._held = False
            gc.collect()  # sessions are cycles, and hold what was read
            self._shared.release()


_turn: ContextVar[Turn | None] = ContextVar("turn_for_large_answers", default=None)


@contextmanager
def one_at_a_time(lock: asyncio.Lock) -> Iterator[None]:
    """Let what runs in this context, its tasks included, read large answers while nobody else of the lock does."""
    turn = Turn(lock)
    token = _turn.set(turn)
    try:
        yield
    finally:
        turn.end()
        _turn.reset(token)


async def wait_for_turn() -> None:
    """Wait for the turn of the work that runs here, if it has to take turns."""
    turn = _turn.get()
    if turn is not None:
        await turn.take()
