"""The result of a run: the beginning of its output, and the files that it wrote.

The code decides what lies in its folder, and this process, which may read more than the code, reads it. So only regular
files with one name are read, through the descriptor of the folder, and everything else is named in `omitted`. A
response of Lambda has 6 MB at most: all limits together stay below it, with files in base64.
"""

import base64
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

LONGEST_OUTPUT = 100_000
"""Bytes of standard output, and of standard error, that are kept."""

MOST_FILES, MOST_FILE_BYTES = 20, 3_500_000
"""Files of a result and their bytes together: a response of Lambda has at most 6 MB, and files are in base64."""

LONGEST_NAME = 200
"""Bytes of a file's name. A folder accepts 255."""

MOST_OMITTED = 20
"""Names of files that a result lists without their contents."""


@dataclass
class Result:
    """The result of a run."""

    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    """Not 0 if the code failed, or if the run was ended."""
    ended_by: str | None = None
    """The limit that ended the run; None if it ended by itself."""
    truncated: bool = False
    """Whether the output is only its beginning."""
    files: list[dict[str, str]] = field(default_factory=list)
    """The files that the code wrote or changed: `name`, and `content` in base64."""
    removed: list[str] = field(default_factory=list)
    """The names of given files that are gone."""
    omitted: list[str] = field(default_factory=list)
    """The names of files that are too many, too large or no plain files, in ASCII, at most MOST_OMITTED."""


@dataclass
class Output:
    """The beginning of an output stream."""

    kept: bytearray = field(default_factory=bytearray)
    truncated: bool = False

    def add(self, chunk: bytes) -> None:
        room = LONGEST_OUTPUT - len(self.kept)
        self.kept += chunk[:room]
        self.truncated = self.truncated or len(chunk) > room

    def text(self) -> str:
        return self.kept.decode("utf-8", "replace")


def collect_files(folder: int, given: Mapping[str, bytes], result: Result) -> None:
    """Add the regular files that the code wrote into its folder or changed, without links and hidden files.

    `folder` was opened before the code ran, which may have put something else at its path.
    """
    os.fchmod(folder, 0o700)
    names, room = sorted(os.listdir(folder)), MOST_FILE_BYTES
    for name in names:
        if name.startswith("."):
            continue
        content = read_file(folder, name, max(room, len(given.get(name, b""))))
        if content is not None and content == given.get(name):
            continue
        if content is None or len(content) > room or len(result.files) == MOST_FILES or not is_plain(name):
            omit(name, result)
            continue
        room -= len(content)
        result.files.append({"name": name, "content": base64.b64encode(content).decode()})
    result.removed = sorted(set(given) - set(names))


def is_plain(name: str) -> bool:
    """Return whether a file's name can be shown, and written again."""
    return name.isprintable() and len(name.encode()) <= LONGEST_NAME


def omit(name: str, result: Result) -> None:
    """Note a file that is not in the result, with a name that is ASCII."""
    if len(result.omitted) < MOST_OMITTED:
        result.omitted.append(ascii(name)[1:-1][:LONGEST_NAME])


def read_file(folder: int, name: str, most: int) -> bytes | None:
    """Return the content of a regular file of at most this many bytes."""
    try:
        # Neither a link to a file of this function, nor a pipe, which would block the open.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        # A second link may be that of a file which the code cannot read, and this process can.
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > most:
            return None
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)
