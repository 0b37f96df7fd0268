"""A clock that tests advance, so that they neither wait for nor race against leases, caches and deadlines."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """`time.time()`, `time.monotonic()` and the clocks of event loops, ahead of the real ones.

    The clock is never set back, since event loops and caches outlive a test.
    """

    def __init__(self) -> None:
        self.ahead = self.wall_ahead = 0.0
        self.stopped: dict[Callable[[], float], float] = {}
        self._time, self._monotonic = time.time, time.monotonic

    def install(self) -> None:
        """Replace the clocks of this process by this one."""
        time.time = lambda: self.read(self._time) + self.wall_ahead
        time.monotonic = lambda: self.read(self._monotonic)

    def read(self, real: Callable[[], float]) -> float:
        return self.stopped.get(real, real()) + self.ahead

    @contextmanager
    def stop(self) -> Iterator[None]:
        """Stop the clock except for moves by the test, so that exact times can be asserted."""
        self.stopped = {real: real() for real in (self._time, self._monotonic)}
        try:
            yield
        finally:
            self.stopped = {}

    @contextmanager
    def wrong(self, seconds: float) -> Iterator[None]:
        """Run the body in a process whose wall clock is so far ahead of the others."""
        self.wall_ahead += seconds
        try:
            yield
        finally:
            self.wall_ahead -= seconds

    def move(self, seconds: float) -> None:
        """Advance the clock. Timers of an event loop that are then due fire the next time it runs."""
        self.ahead += seconds

    def move_to(self, milliseconds: int | None) -> None:
        """Advance the clock to the end of a lease, in ms of the epoch; None is a lease without a holder."""
        self.move(max((milliseconds or 0) / 1000 - time.time() + 0.002, 0))


CLOCK = Clock()
