"""`make run` of a tree as a process, and the processes of its functions."""

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from infra.bench.base import Tree
from infra.bench.memory import peak
from infra.local.errors import LocalCloudError

START_SECONDS = 60.0
SERVES = re.compile(rb"serves (http://\S+)")
SETTINGS = {"STINT_SCRIPTED_WORD_SECONDS": "0"}


@dataclass(frozen=True)
class Side:
    """A running system; `pid` is the process of its front end, the parent of its functions."""

    name: str
    url: str
    pid: int

    def cpu_seconds(self, function: str) -> float:
        """Return the CPU time that the processes of a function have used so far. Linux only."""
        return sum(cpu_seconds(pid) for pid in self._processes(function))

    def peak_memory(self, function: str) -> float:
        """Return the sum of the peaks of the processes of a function in MB. Linux only."""
        return sum(peak(pid) for pid in self._processes(function))

    def kill(self, function: str) -> None:
        """Kill the processes of a function, so that the next request starts one."""
        for pid in self._processes(function):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _processes(self, function: str) -> list[int]:
        """Return the processes of a function: they run in its folder."""
        children = Path(f"/proc/{self.pid}/task").glob("*/children")
        pids = [int(pid) for file in children for pid in file.read_text().split()]
        return [pid for pid in pids if Path(f"/proc/{pid}/cwd").readlink().name == function]


@contextlib.asynccontextmanager
async def running_side(tree: Tree, model_url: str = "") -> AsyncIterator[Side]:
    """Run `make run` of a tree with an empty store on a free port, and stop it at the end.

    `model_url` is the base URL of the server of its `openai/` models.
    """
    settings = SETTINGS | ({"OPENAI_BASE_URL": model_url, "OPENAI_API_KEY": "bench"} if model_url else {})
    path = os.pathsep.join(str(tree.root / each) for each in ("layers/core", "layers/runtime/python", "."))
    with tempfile.TemporaryDirectory(prefix="stint-side-", ignore_cleanup_errors=True) as state:
        process = await asyncio.create_subprocess_exec(
            *(str(tree.python), "-m", "infra.local", "--state", state, "run", "--port", "0"),
            cwd=tree.root,
            env={**settings, "PYTHONPATH": path, "PATH": os.environ["PATH"]},
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
        try:
            url, reading = await serving_url(process, tree)
            try:
                yield Side(tree.name, url, process.pid)
            finally:
                reading.cancel()
                await asyncio.wait({reading})
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            await process.communicate()


async def serving_url(process: asyncio.subprocess.Process, tree: Tree) -> tuple[str, asyncio.Task[None]]:
    """Wait until the front serves. The task reads on, because a full pipe would stop the process."""
    said = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            while process.stdout and (line := await process.stdout.readline()):
                said += line
                if found := SERVES.search(line):
                    return found[1].decode(), asyncio.create_task(drop(process.stdout))
    raise LocalCloudError(f"make run of {tree.name} did not start: {said.decode('utf-8', 'replace')}")


async def drop(output: asyncio.StreamReader) -> None:
    while await output.read(64 * 1024):
        pass


def cpu_seconds(pid: int) -> float:
    """Return user and system time of the threads of a process.

    proc_pid_stat(5) has it, too, but in hundredths of a second; not every kernel has the other file.
    """
    threads = [each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    if threads:
        return sum(int(each.split()[0]) for each in threads) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
