"""Processes that the fork server starts: servers of the API and workers."""

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from infra.local.engine import ROOT
from tests.faults.fault_proxy import kill_process, stop_process
from tests.system.run_process import clean_shell

Command = Mapping[str, Any]


@dataclass
class ForkedProcess:
    """A process. `url` is the address of its API; a worker does not serve one."""

    pid: int
    port: int
    ended: bool = field(default=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


class ForkServerClient:
    """Context manager that runs the fork server, and forks processes. Methods are for any thread."""

    def __init__(self) -> None:
        self.log = Path(tempfile.mkdtemp(prefix="stint-faults-")) / "processes.log"
        self._lock = threading.Lock()
        self._server: subprocess.Popen[str]

    def __enter__(self) -> Self:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.fork_server", str(self.log)],
            cwd=ROOT,
            env=clean_shell() | {"AWS_EC2_METADATA_DISABLED": "true", "POWERTOOLS_SERVICE_NAME": "faults"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def fork(self, run: str, environment: Mapping[str, str], ahead: float, event: Any = None) -> ForkedProcess:
        """Start a process whose clock is `ahead` of the real one, in seconds."""
        started = self._call({"run": run, "environment": dict(environment), "ahead": ahead, "event": event})
        return ForkedProcess(started["pid"], started["port"])

    @contextmanager
    def warm(self, environment: Mapping[str, str]) -> Iterator[ForkedProcess]:
        """Serve the API in the fork server itself. What requests import and build is then there for all processes."""
        started = self._call({"run": "warm", "environment": dict(environment)})
        try:
            yield ForkedProcess(started["pid"], started["port"])
        finally:
            stop_process(started["pid"])
            with self._lock:
                self._read()

    def work_here(self, environment: Mapping[str, str], event: Any) -> None:
        """Handle an event of the queue in the fork server itself."""
        self._call({"run": "work-here", "environment": dict(environment), "event": event})

    def wait(self, process: ForkedProcess, seconds: float = 60.0) -> Any:
        """Wait until a process ends, and return the answer that a worker has written, or None if it died.

        A process that does not end within `seconds` is killed.
        """
        limit = threading.Timer(seconds, kill_process, [process.pid])
        limit.start()
        try:
            ended = self._call({"run": "wait", "pid": process.pid})
        finally:
            limit.cancel()
        process.ended = True
        return json.loads(ended["answer"]) if ended["status"] == 0 and ended["answer"] else None

    def _call(self, command: Command) -> dict[str, Any]:
        with self._lock:
            assert self._server.stdin is not None
            print(json.dumps(command), file=self._server.stdin, flush=True)
            return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"The fork server ended: {self.log.read_text()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
