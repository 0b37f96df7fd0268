"""Counts of what a body does and takes, which no other process disturbs."""

import gc
import sys
import tracemalloc
from asyncio import TimerHandle
from types import FrameType

COMPARISON = TimerHandle.__lt__.__code__


class CallCount:
    """Counts the calls of Python's functions in a body. Each resumption of a coroutine is one.

    The comparisons of the event loop's timers are not counted: they depend on the times at which these were set.
    """

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> "CallCount":
        sys.setprofile(self.note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event == "call" and frame.f_code is not COMPARISON


class AllocatedBytes:
    """Measures the bytes that a body allocates: at most at a time (`most`), and those that stay (`kept`).

    The collector of garbage runs before and after the body, and not within: garbage does not depend on its schedule.
    """

    def __init__(self) -> None:
        self.most = self.kept = 0

    def __enter__(self) -> "AllocatedBytes":
        gc.collect()
        gc.disable()
        tracemalloc.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.most = tracemalloc.get_traced_memory()[1]
        gc.collect()
        self.kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        gc.enable()
