"""One run of code: a folder, a process, its output, and the files that it wrote.

The folder is used through a descriptor, which is opened before the code runs: the code may put something else at its
path, and the tmpfs of an isolated run has no path outside of its namespaces. A run ends with its process, at its
deadline, or when its memory exceeds the limit. Memory is that of all processes, adopted ones included, and of what no
process needs to have mapped: the tmpfs, or the shared memory of a machine that runs nothing else. All processes are
ended before the files are read.
"""

import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from namespaces import NOBODY
from processes import (
    adopt_orphans,
    bytes_in_use,
    descendants,
    find_running,
    kill_descendants,
    memory_of,
    reap,
    shared_memory,
)
from removal import clear, remove
from result import Output, Result, collect_files

HERE = Path(__file__).parent
CODE = ".code.py"
PAUSE_SECONDS = 0.05
START_SECONDS = 10.0
PYTHON = (os.path.realpath(sys.executable), "-E", "-s")
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Seconds of a run, and bytes of memory of all its processes together."""

    seconds: float = 30.0
    memory: int = 512 * MEGABYTE


def execute(code: str, files: Mapping[str, bytes], limits: Limits, *, isolated: bool) -> Result:
    """Run code in a new folder with these files. `isolated`: in namespaces, because this machine is shared.

    When this returns, no process of the run is left, and nothing that it wrote.
    """
    adopt_orphans()
    given = {**files, CODE: code.encode("utf-8", "replace")}
    with work_folder() as folder:
        return (run_isolated if isolated else run_beside)(folder, limits, given)


def run_isolated(folder: Path, limits: Limits, given: Mapping[str, bytes]) -> Result:
    """Run code in namespaces, in a folder of a tmpfs, whose bytes count as memory. Raises OSError."""
    kept = set(descendants(os.getpid()))
    ours, theirs = socket.socketpair()
    with ours, theirs, ExitStack() as stack:
        launcher = [*PYTHON, str(HERE / "namespaces.py"), str(folder), str(theirs.fileno())]
        with running([*launcher, *command_for(folder, limits)], folder, kept, theirs.fileno()) as process:
            theirs.close()
            opened = receive_folder(ours)
            stack.callback(os.close, opened)
            write_files(opened, given)
            ours.send(b".")
            result = read_output(process, limits, lambda: memory_beside(kept) + bytes_in_use(opened))
        return collect(process, opened, given, result)


def run_beside(folder: Path, limits: Limits, given: Mapping[str, bytes]) -> Result:
    """Run code beside this process, on a machine that has nothing else. Lambda limits the size of its disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        write_files(opened, given)
        change_owner_to_nobody(folder)
        kept, before = set(descendants(os.getpid())), shared_memory()
        with running(command_for(folder, limits), folder, kept) as process:
            result = read_output(process, limits, lambda: memory_beside(kept) + shared_memory() - before)
        return collect(process, opened, given, result)
    finally:
        os.close(opened)


@contextmanager
def work_folder() -> Iterator[Path]:
    """Make a folder, and remove it with everything else that was written beside it.

    Lambda keeps what is in these places when the function dies, so they are emptied before a run, too.
    """
    remove_temporary_files()
    folder = Path(tempfile.mkdtemp(prefix="run-"))
    try:
        yield folder
    finally:
        for path in (folder, Path(f"{folder}.root")):
            remove(path)
        remove_temporary_files()


def remove_temporary_files() -> None:
    """Remove all temporary files, if they belong to runs."""
    if is_own_machine():
        for place in (tempfile.gettempdir(), "/dev/shm", "/var/tmp"):  # noqa: S108 - they are emptied
            clear(Path(place))


def is_own_machine() -> bool:
    """Return whether this is a function in Lambda, so that all temporary files belong to its runs."""
    return "AWS_EXECUTION_ENV" in os.environ and not os.environ.get("SANDBOX_NAMESPACES")


def change_owner_to_nobody(folder: Path) -> None:
    """Make nobody the owner of a folder, if this process is root, which the code must not be."""
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)


def memory_beside(kept: set[int]) -> int:
    """Return the bytes of memory of this process's descendants that are not kept, also of those that it has adopted."""
    return memory_of(find_running(os.getpid(), kept))


def receive_folder(launcher: socket.socket) -> int:
    """Receive the descriptor of the folder from the launcher. Raises OSError."""
    launcher.settimeout(START_SECONDS)
    _, descriptors, _, _ = socket.recv_fds(launcher, 1, 1)
    if not descriptors:
        raise OSError("The launcher ended before it had made the namespaces and the folder of the run.")
    return descriptors[0]


def write_files(folder: int, files: Mapping[str, bytes]) -> None:
    """Write files into an open folder."""
    for name, content in files.items():
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if os.getuid() == 0:
                os.fchown(descriptor, NOBODY, NOBODY)


def command_for(folder: Path, limits: Limits) -> list[str]:
    """Return the command that runs the code."""
    return [*PYTHON, str(HERE / "child.py"), str(folder), CODE, str(limits.memory), str(max(1, round(limits.seconds)))]


@contextmanager
def running(
    command: list[str], folder: Path, kept: set[int], passed: int | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a command without credentials in its environment, and end it with all other processes that are not kept."""
    environment = {"HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    environment["MPLCONFIGDIR"] = str(folder)
    process = subprocess.Popen(  # noqa: S603 - the purpose of this function
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=() if passed is None else (passed,),
    )
    try:
        yield process
    finally:
        kill_descendants(os.getpid(), kept)
        process.wait()
        reap(os.getpid(), kept)


def read_output(process: "subprocess.Popen[bytes]", limits: Limits, measure: Callable[[], int]) -> Result:
    """Read the output until the process ends or a limit is reached.

    `measure` returns the bytes of memory that the run uses.
    """
    output, errors, ended_by = Output(), Output(), None
    deadline = time.monotonic() + limits.seconds
    with selectors.DefaultSelector() as selector:
        for stream, place in ((process.stdout, output), (process.stderr, errors)):
            if stream is None:
                continue
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, place)
        while process.poll() is None:
            read_ready(selector, PAUSE_SECONDS)
            if time.monotonic() >= deadline:
                ended_by = f"the time limit of {limits.seconds:g} seconds"
                break
            if measure() > limits.memory:
                ended_by = f"the memory limit of {limits.memory // MEGABYTE} MB"
                break
        # What the process wrote just before its end is still in the pipes.
        while ended_by is None and read_ready(selector, 0):
            pass
    truncated = output.truncated or errors.truncated
    return Result(output.text(), errors.text(), ended_by=ended_by, truncated=truncated)


def read_ready(selector: selectors.BaseSelector, seconds: float) -> bool:
    """Read from the streams that are ready, and return whether there was anything."""
    found = False
    for key, _ in selector.select(seconds):
        chunk = os.read(key.fd, 65_536)
        if chunk:
            key.data.add(chunk)
            found = True
        else:
            selector.unregister(key.fileobj)
    return found


def collect(process: "subprocess.Popen[bytes]", opened: int, given: Mapping[str, bytes], result: Result) -> Result:
    """Add the exit code and the files of a run that has ended."""
    result.exit_code = process.returncode
    collect_files(opened, {name: content for name, content in given.items() if name != CODE}, result)
    return result
