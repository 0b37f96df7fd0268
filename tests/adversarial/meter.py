"""Measurement of a request's costs: CPU time and memory, never wall-clock time."""

import asyncio
import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a request.

    `stretch` is the longest callback of the event loop, in seconds of CPU time. `cpu` are the seconds of CPU time of
    the process and its finished children. `grown` are the bytes by which the peak memory, of the process and its
    children together, exceeds that of the idle process before its first request. So what earlier requests of a case
    have left behind counts, too.
    """

    stretch: float = 0.0
    cpu: float = 0.0
    grown: int = 0


class Meter:
    """Meter of its own process, from `start` to `stop`.

    Create only one per process, while it is idle: it patches the event loop, and notes the memory.
    """

    def __init__(self) -> None:
        self.stretch = self.cpu = 0.0
        self.held = resident_bytes()
        run = asyncio.Handle._run

        def run_timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            try:
                run(handle)
            finally:
                self.add_stretch(time.thread_time() - began)

        asyncio.Handle._run = run_timed  # type: ignore[assignment, method-assign]

    def add_stretch(self, seconds: float) -> None:
        self.stretch = max(self.stretch, seconds)

    def start(self) -> None:
        self.stretch, self.cpu = 0.0, cpu_seconds()
        reset_peak()

    def stop(self) -> Costs:
        return Costs(self.stretch, cpu_seconds() - self.cpu, peak_bytes() - self.held)


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def reset_peak() -> None:
    """Reset the peak of this process to its current memory; this works only on Linux."""
    try:
        (PROC / "self" / "clear_refs").write_text("5")
    except OSError:
        return


def resident_bytes(process: str = "self") -> int:
    """Return the current memory of a process, or 0 if it has ended. It is known on Linux only."""
    try:
        return int((PROC / process / "statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_bytes() if process == "self" else 0


def peak_bytes(process: str = "self") -> int:
    """Return the peak memory of a process, or 0 if it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", (PROC / process / "status").read_text())
    except OSError:
        if process == "self":
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return 0
    return int(found[1]) * 1024 if found else 0


def children_peak_bytes(process: int) -> int:
    """Return the highest peak memory of a process's current children."""
    try:
        own = (PROC / str(process) / "cmdline").read_bytes()
        tasks = (PROC / str(process) / "task").glob("*/children")
        children = [child for task in tasks for child in task.read_text().split()]
        # Before a child has started its own program, it shows the memory of its parent.
        begun = [child for child in children if (PROC / child / "cmdline").read_bytes() not in (own, b"")]
    except OSError:
        return 0
    return max(map(peak_bytes, begun), default=0)
