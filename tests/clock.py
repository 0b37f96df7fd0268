"""A clock that tests move on: no test waits for a lease, a cache or a deadline, and none races one."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """`time.time()` and `time.monotonic()`, and so every event loop's clock, ahead of the real ones.

    It never goes back, since event loops and caches outlive a test.
    """

    def __init__(self) -> None:
        self.ahead = 0.0
        self.stopped: dict[Callable[[], float], float] = {}
        self._time, self._monotonic = time.time, time.monotonic

    def install(self) -> None:
        """Let everything in this process read this clock."""
        time.time = lambda: self.read(self._time)
        time.monotonic = lambda: self.read(self._monotonic)

    def read(self, real: Callable[[], float]) -> float:
        return self.stopped.get(real, real()) + self.ahead

    @contextmanager
    def stop(self) -> Iterator[None]:
        """Let time stand still, but for what a test moves: what is computed from it can be told exactly."""
        self.stopped = {real: real() for real in (self._time, self._monotonic)}
        yield
        self.stopped = {}

    def move(self, seconds: float) -> None:
        """Move the clock on. Timers of an event loop that are due by then fire when it runs next."""
        self.ahead += seconds

    def move_to(self, milliseconds: int | None) -> None:
        """Move the clock to the end of a lease, a time of the epoch in ms; None is a lease that nobody holds."""
        self.move(max((milliseconds or 0) / 1000 - time.time() + 0.002, 0))


CLOCK = Clock()
