"""Large answers of servers are read one at a time: each takes many times its size while it is parsed."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LARGE = 100_000
"""Bytes after which the rest of an answer waits for the lock."""


class LazyLock:
    """A shared lock, acquired when first needed and held until the work is over. Tasks of the work may share it."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._shared = lock
        self._acquiring = asyncio.Lock()
        self._held = self._released = False

    async def acquire(self) -> None:
        """Acquire the shared lock, unless this has been done, or the work is over."""
        async with self._acquiring:
            if self._held or self._released:
                return
            await self._shared.acquire()
            self._held = True
            if self._released:
                self.release()

    def release(self) -> None:
        """Release the shared lock, if it is held, for good."""
        self._released = True
        if self._held:
            self._held = False
            gc.collect()  # sessions are cycles, and hold what was read
            self._shared.release()


_lock: ContextVar[LazyLock | None] = ContextVar("lock_for_large_answers", default=None)


@contextmanager
def large_answers_one_at_a_time(lock: asyncio.Lock) -> Iterator[None]:
    """Let what runs in this context, its tasks included, read large answers only while it holds a lock."""
    lazy = LazyLock(lock)
    token = _lock.set(lazy)
    try:
        yield
    finally:
        lazy.release()
        _lock.reset(token)


async def acquire_for_large_answer() -> None:
    """Acquire the lock of the work that runs here, if it has one."""
    lazy = _lock.get()
    if lazy is not None:
        await lazy.acquire()
