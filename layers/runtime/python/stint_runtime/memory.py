"""The memory of the process: its limit for many invocations, and the removal of what an invocation left behind.

Objects that refer to each other, as an exception and its frames do, are freed by Python's garbage collector only. It
counts objects and not bytes, so a body of 6 MB that such an object refers to could stay for many invocations.
"""

import gc
import os

from stint_runtime.errors import log

_STATM = "/proc/self/statm"
_GROWTH_SHARE = 0.05


class Memory:
    """The resident memory and its limit. Outside of Linux it is unknown, and never over the limit."""

    def __init__(self, limit: int | None, statm: str = _STATM) -> None:
        self._limit = limit
        self._statm = statm
        self._was_over = False

    def is_over(self) -> bool:
        """Return whether the process uses more than the limit, and log each time when it begins to."""
        if self._limit is None:
            return False
        used = resident_bytes(self._statm)
        over = used > self._limit
        if over and not self._was_over:
            log("WARNING", f"The process uses {_mb(used)} MB. It requests no events above {_mb(self._limit)} MB.")
        self._was_over = over
        return over


class Collector:
    """Collects garbage after an invocation, if the process has grown by a twentieth of the function's memory.

    It counts from the last collection, so caches and modules that stay lead to one collection each.
    """

    def __init__(self, function_bytes: int | None, statm: str = _STATM) -> None:
        self._growth = function_bytes * _GROWTH_SHARE if function_bytes else None
        self._statm = statm
        self._before = resident_bytes(statm)

    def collect(self) -> None:
        """Collect garbage if the process has grown enough since the last time."""
        if self._growth is not None and resident_bytes(self._statm) > self._before + self._growth:
            gc.collect()
            self._before = resident_bytes(self._statm)


def resident_bytes(statm: str = _STATM) -> int:
    """Return the resident set size, which counts what libraries allocate, too; 0 if it is unknown.

    proc_pid_statm(5)
    """
    try:
        with open(statm, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _mb(size: int) -> int:
    return size // (1024 * 1024)
