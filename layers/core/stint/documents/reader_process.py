"""The parent's side of the process that reads documents."""

import asyncio
import json
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from typing import Self

from stint.dataclasses import asdict
from stint.documents.conversion import Job
from stint.documents.limits import Limits
from stint.documents.served import Unreadable

# The process needs this one's `sys.path`: Lambda's runtime sets it internally, not in the environment.
PROGRAM = "import sys; sys.path[:] = sys.argv[3:]; from stint.documents.process import main; main()"

PIECE = 262_144
ENDING_SECONDS = 1.0
"""Longest time from the last byte of a process to its end."""


class ProcessEnded(Exception):
    """The process ended before it answered. `for_cpu_time`: it had used up its CPU time."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process that reads it ended with status {status}")
        self.for_cpu_time = status == -signal.SIGXCPU


class ReaderProcess:
    """Runs `stint.documents.process`. The caller ends it, also after a failure."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, limits: Limits) -> Self:
        # Isolated and without site packages: the process imports only from the paths it is passed.
        command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(limits.cpu_seconds), str(limits.memory_bytes)]
        return cls(await asyncio.create_subprocess_exec(*command, *sys.path, stdin=PIPE, stdout=PIPE, stderr=DEVNULL))

    async def convert(self, job: Job, body: bytes) -> str:
        """Convert a document to plain text.

        Raises:
            Unreadable: it cannot be read. The process can continue with the next one.
            ProcessEnded: the process was killed, because of its limits or from outside.
        """
        source, target = self._process.stdout, self._process.stdin
        assert source is not None and target is not None  # noqa: S101, PT018 - both are pipes
        try:
            target.write(json.dumps({"job": asdict(job), "length": len(body)}).encode() + b"\n")
            for start in range(0, len(body), PIECE):  # in one piece it would be copied into the pipe's buffer
                target.write(body[start : start + PIECE])
                await target.drain()
            answer = json.loads(await source.readline())
            if "error" in answer:
                raise Unreadable(answer["error"], answer["code"])
            # The process runs code that hostile documents have reached, so its answers are not trusted either.
            if answer["length"] > job.text_bytes:
                raise ValueError("the text is too long")
            return (await source.readexactly(answer["length"])).decode()
        except (ConnectionError, EOFError, KeyError, ValueError) as error:
            if isinstance(error, Unreadable):
                raise
            # Its own end has the signal that killed it, and so the reason.
            if source.at_eof() or isinstance(error, ConnectionError):
                await self._wait_for_end()
            raise ProcessEnded(await self.stop()) from error

    async def _wait_for_end(self) -> None:
        """Wait for a process that ends by itself; after `kill` the event loop would not get its status."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), ENDING_SECONDS)

    async def stop(self) -> int:
        """Kill the process if it still runs, and return its status."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._process.communicate()
        return self._process.returncode or 0
