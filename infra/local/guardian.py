"""Leaves no process and no folder behind when the owner of the local cloud is killed hard.

The guardian is a process of its own with a pipe to its owner. The owner names the process groups that it starts and
those that have ended; at the end of the pipe, however it came about, the guardian kills what is left and removes the
folder it was given.
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
        """Start the guardian in a session of its own, where no Ctrl-C reaches it."""
        command = (sys.executable, "-S", "-E", __file__, str(folder))
        self._process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, start_new_session=True)

    def watch(self, group: int) -> None:
        """Name a process group that must end with the owner."""
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Name a process group that has ended."""
        self._tell(f"-{group}\n")

    async def stop(self) -> None:
        """End the guardian, which kills what it still watches."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            await self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.write(line.encode())


def main() -> None:
    """Read names until the owner is gone, then clear up."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
