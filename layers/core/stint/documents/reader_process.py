"""A process that reads documents, seen from the one that asks it to."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from dataclasses import asdict
from typing import Self

from stint.documents.conversion import Job
from stint.documents.limits import Limits
from stint.documents.served import Unreadable

# It gets the paths of this process: Lambda's runtime sets them inside itself, where no environment shows them.
PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from stint.documents.process import main; main()"

PIECE = 262_144
ENDING_SECONDS = 1.0
"""The time from the last byte of a process to its end, at the most."""


class ProcessEnded(Exception):
    """The process ended before it gave an answer. `for_cpu_time`: it had used up its CPU time."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process that read it ended with {status}")
        self.for_cpu_time = status == -signal.SIGXCPU


class ReaderProcess:
    """Runs `stint.documents.process`. End it after use, also after a failure."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, limits: Limits) -> Self:
        # Isolated, and without a search for site packages: what it may import is in the paths that it gets.
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(limits.cpu_seconds), str(limits.memory_bytes)]
        return cls(await asyncio.create_subprocess_exec(*command, *sys.path, stdin=PIPE, stdout=PIPE, stderr=DEVNULL))

    async def convert(self, job: Job, body: bytes) -> str:
        """Turn a document into plain text.

        Raises:
            Unreadable: it cannot be read. The process can go on with the next one.
            ProcessEnded: the process was killed, for what it used or by somebody else.
        """
        source, target = self._process.stdout, self._process.stdin
        assert source is not None and target is not None  # noqa: S101, PT018 - both are pipes
        try:
            target.write(json.dumps({"job": asdict(job), "length": len(body)}).encode() + b"\n")
            for start in range(0, len(body), PIECE):  # whole it would be copied into the pipe's buffer
                target.write(body[start : start + PIECE])
                await target.drain()
            answer = json.loads(await source.readline())
            if "error" in answer:
                raise Unreadable(answer["error"], answer["code"])
            if answer["length"] > 4 * job.characters:
                raise ValueError("the text is longer than it may be")
            return (await source.readexactly(answer["length"])).decode()
        except (ConnectionError, EOFError, KeyError, ValueError) as error:
            if isinstance(error, Unreadable):
                raise
            if source.at_eof() or isinstance(error, ConnectionError):
                await self._wait_for_end()
            raise ProcessEnded(await self.end()) from error

    async def _wait_for_end(self) -> None:
        """Wait for a process that ends by itself: `kill` would take the status away from the event loop."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), ENDING_SECONDS)

    async def end(self) -> int:
        """Kill the process unless it has ended, and return its status."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._process.communicate()
        return self._process.returncode or 0
