"""A lock for large responses, which are read one at a time: parsing takes many times their size in memory.

The lock is one of the process, and only work that reads more than LARGE bytes waits for it. It is held until the work
ends, since what was parsed lives as long.

  state      `_held`   `_released`   acquire                       release
  unused     False     False         waits for the lock: held      ended
  held       True      False         returns at once               frees the lock: ended
  ended      False     True          returns at once               nothing

The work can end while one of its tasks waits for the lock. That task acquires it after the end, and so frees it at
once: otherwise nobody would.
"""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LARGE = 100_000
"""Bytes after which the rest of a response waits for the lock."""


class LazyLock:
    """A shared lock that is acquired when first needed and held until the work ends. Its tasks may share it."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._shared = lock
        self._acquiring = asyncio.Lock()
        self._held = self._released = False

    async def acquire(self) -> None:
        """Acquire the shared lock, unless it is held already or the work has ended."""
        # The tasks of one work wait here for each other, so the shared lock is acquired once.
        async with self._acquiring:
            if self._held or self._released:
                return
            await self._shared.acquire()
            self._held = True
            if self._released:
                self.release()

    def release(self) -> None:
        """Release the shared lock if it is held. It cannot be acquired again."""
        self._released = True
        if self._held:
            self._held = False
            gc.collect()  # sessions are reference cycles, and keep what was read
            self._shared.release()


_lock: ContextVar[LazyLock | None] = ContextVar("lock_for_large_answers", default=None)


@contextmanager
def serialize_large_answers(lock: asyncio.Lock) -> Iterator[None]:
    """Make this context, including its tasks, hold a lock while it reads large responses."""
    lazy = LazyLock(lock)
    token = _lock.set(lazy)
    try:
        yield
    finally:
        lazy.release()
        _lock.reset(token)


async def acquire_for_large_answer() -> None:
    """Acquire the lock of the current context, if it has one."""
    lazy = _lock.get()
    if lazy is not None:
        await lazy.acquire()
