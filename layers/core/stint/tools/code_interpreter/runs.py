"""Runs of code: the port of the places that run it, and their results."""

import asyncio
import base64
from collections.abc import Mapping
from typing import Protocol, Self

from stint.domain.schema import Schema
from stint.metering import find_deadline
from stint.tools.code_interpreter.files import LONGEST_NAME

RUN_SECONDS = 60
"""Seconds of a run."""

MARGIN_SECONDS, LEAST_SECONDS = 2.0, 1.0
"""Seconds for the answer of a run before its request ends, and the shortest run."""

NO_TIME = "The code did not run, because the request has no time left for it."

LONGEST_OUTPUT = 100_000
"""Maximum bytes of standard output, and of standard error."""

LONGEST_CODE = 200_000
"""Maximum bytes of code."""


MOST_OMITTED = 20
"""Maximum names of files that a result lists without their contents."""


class RunFile(Schema):
    """A file that the code wrote, in base64."""

    name: str
    content: str

    @classmethod
    def of(cls, name: str, content: bytes) -> Self:
        return cls(name=name, content=base64.b64encode(content).decode())


class RunResult(Schema):
    """The result of a run."""

    refused: str | None = None
    """The reason why there is no result. The code may have run."""
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    """Not 0 if the code failed, or if the run was ended."""
    ended_by: str | None = None
    """What ended the run, such as a limit; None if it ended by itself."""
    truncated: bool = False
    """Whether the output is only its beginning."""
    files: list[RunFile] = []
    """The files that were written or changed."""
    removed: list[str] = []
    """The names of given files that are gone."""
    omitted: list[str] = []
    """The names of files that could not be returned, in ASCII, at most MOST_OMITTED."""

    def omit(self, name: str) -> None:
        """Note a file that is not returned, with a name that is ASCII."""
        if len(self.omitted) < MOST_OMITTED:
            self.omitted.append(ascii(name[:LONGEST_NAME])[1:-1])


class CodeRunner(Protocol):
    """Runs Python code in a new process."""

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        """Run code in a folder with these files, for the tenant of the current code.

        Raises:
            ToolUnavailable: the place that runs code cannot be used.
        """
        ...


def seconds_left() -> float:
    """Return the seconds of a run that ends before its request, which nobody would await after that."""
    deadline = find_deadline()
    if deadline is None:
        return RUN_SECONDS
    return min(deadline - asyncio.get_running_loop().time() - MARGIN_SECONDS, RUN_SECONDS)


def check_code(code: object) -> str | None:
    """Return what is wrong with the argument `code`, for the model."""
    if not isinstance(code, str) or not code.strip():
        return "The argument code is missing. Send the Python code as a text."
    if len(code.encode("utf-8", "replace")) > LONGEST_CODE:
        return f"The code has more than {LONGEST_CODE} bytes. Send shorter code."
    return None
