"""Cleanup of processes and files if the owner of the local cloud is killed.

The guardian is a separate process with a pipe to its owner. The owner writes the ids of the process groups that start
and end. When the pipe ends, for whatever reason, the guardian kills the remaining groups and removes its folder.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path


class Guardian:
    """The owner's end of the pipe."""

    def __init__(self) -> None:
        self._process: Process | None = None

    async def start(self, folder: Path) -> None:
        """Start the guardian in a separate session, where it does not receive Ctrl-C."""
        command = (sys.executable, "-S", "-E", __file__, str(folder))
        self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, start_new_session=True)

    def watch(self, group: int) -> None:
        """Register a process group that must end with the owner."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Unregister a process group that has ended."""
        self._tell(f"-{group}\n")

    async def stop(self) -> None:
        """Stop the guardian, which then kills the registered groups."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            await self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(line.encode())


def main() -> None:
    """Read process groups until the owner has ended, then clean up."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
