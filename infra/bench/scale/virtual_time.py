"""An event loop whose time passes only when nothing is left to do, and then at once.

Turns of 30 seconds with their renewals, watches and retries so take as long as their CPU time, and the order of their
calls is exact: it does not depend on how fast this machine is. Whatever waits must wait for a timer of the loop. A wait
for a thread or a connection would never end, so functions of `asyncio.to_thread` run at once, and a loop without any
timer is an error.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch

T = TypeVar("T")


class VirtualClock:
    """The seconds since the start. `time.time` and `time.monotonic` are made from them meanwhile.

    They are small numbers, so that each sum with a timeout is exact enough for the loop to call what is then due.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._epoch = time.time()

    def read(self) -> float:
        return self.now

    def read_wall(self) -> float:
        return self._epoch + self.now


class VirtualSelector(selectors.SelectSelector):
    """Moves the clock where a selector waits."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("All tasks wait, and none of them for a timer.")
        if timeout > 0:
            self._clock.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """The loop of a VirtualClock."""

    def __init__(self, clock: VirtualClock) -> None:
        self._virtual = clock
        super().__init__(VirtualSelector(clock))

    def time(self) -> float:
        return self._virtual.now

    def run_in_executor(  # type: ignore[override]  # typeshed has the arguments as a TypeVarTuple
        self, _executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        """Run a function now."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the one who waits gets it
            done.set_exception(error)
        return done


@contextmanager
def virtual_time() -> Iterator[VirtualClock]:
    """Replace the clocks of this process."""
    clock = VirtualClock()
    with patch.object(time, "time", clock.read_wall), patch.object(time, "monotonic", clock.read):
        yield clock


def run_virtually(make: Callable[[VirtualClock], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end in virtual time."""
    with virtual_time() as clock, asyncio.Runner(loop_factory=lambda: VirtualLoop(clock)) as runner:
        return runner.run(make(clock))
