"""Find, measure and kill the processes of a run.

They are found by their parents. The function adopts orphans (PR_SET_CHILD_SUBREAPER), so a process that detaches itself
stays below it.
"""

import ctypes
import os
import re
import signal
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
PAGE = os.sysconf("SC_PAGE_SIZE")


def adopt_orphans() -> None:
    """Let orphans of this process's children become its own children (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Refuse access to this process's memory, environment and files, also to other processes of its user."""
    prctl(PR_SET_DUMPABLE, 0)


def prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


@dataclass(frozen=True)
class Process:
    """A running process, or one that has ended and was not waited for."""

    id: int
    parent: int
    ended: bool


def descendants(root: int) -> dict[int, Process]:
    """Return all processes below one, by their ids."""
    children: dict[int, list[Process]] = defaultdict(list)
    for process in read_processes():
        children[process.parent].append(process)
    found: dict[int, Process] = {}
    waiting = [root]
    while waiting:
        for process in children[waiting.pop()]:
            if process.id not in found:
                found[process.id] = process
                waiting.append(process.id)
    return found


def read_processes() -> Iterator[Process]:
    """Yield all processes. The name in /proc/PID/stat may contain spaces and parentheses (proc_pid_stat(5))."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                state, parent = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                yield Process(int(entry.name), int(parent), state in ("Z", "X"))


def memory_of(processes: Iterable[int]) -> int:
    """Return the bytes of memory that processes have in use."""
    total = 0
    for process in processes:
        with suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    return total


def shared_memory() -> int:
    """Return the bytes of memory of this machine that are shared: those of a tmpfs, and of shared mappings.

    A process can unmap them, or pass a mapping on to a child that never reads it, so that no process has them.
    """
    found = re.search(r"^Shmem:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def bytes_in_use(descriptor: int) -> int:
    """Return the bytes that the files of a file system use, of which one is open."""
    usage = os.fstatvfs(descriptor)
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize


def kill_descendants(root: int, kept: Container[int]) -> None:
    """Kill all processes below one, except `kept`, until none runs.

    They are stopped first, because a process that forks without end is faster than one pass.
    """
    while running := find_running(root, kept):
        for number in (signal.SIGSTOP, signal.SIGSTOP, signal.SIGKILL):
            for process in running | find_running(root, kept):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
        time.sleep(0.001)


def find_running(root: int, kept: Container[int]) -> set[int]:
    """Return the ids of the processes below one that run."""
    return {each.id for each in descendants(root).values() if not each.ended and each.id not in kept}


def reap(root: int, kept: Container[int]) -> None:
    """Remove the children of this process that have ended."""
    for each in descendants(root).values():
        if each.parent == root and each.ended and each.id not in kept:
            with suppress(ChildProcessError):
                os.waitpid(each.id, os.WNOHANG)
