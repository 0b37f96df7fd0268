"""The memory of this process, compared with the function's."""

import os
from pathlib import Path

from stint_runtime.errors import log

_STATM = Path("/proc/self/statm")


class Memory:
    """The resident memory and its limit. Outside of Linux it is unknown, and never over the limit."""

    def __init__(self, limit: int | None, statm: Path = _STATM) -> None:
        # The kernel's number, which counts what libraries allocate outside of Python, too.
        self._limit = limit if statm.exists() else None
        self._statm = statm
        self._was_over = False

    def is_over(self) -> bool:
        """Return whether the process uses more than the limit, and log each time when it begins to."""
        if self._limit is None:
            return False
        used = self._used()
        over = used > self._limit
        if over and not self._was_over:
            log("WARNING", f"The process uses {_mb(used)} MB. It requests no events above {_mb(self._limit)} MB.")
        self._was_over = over
        return over

    def _used(self) -> int:
        """Return the resident set size, proc_pid_statm(5)."""
        return int(self._statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _mb(size: int) -> int:
    return size // (1024 * 1024)
