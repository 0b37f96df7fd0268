import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from infra.local.engine import ROOT
from tests.openresponses.wire import Tap


class Run:
    """`make run` as a process; `lines` is its output so far. With port 0 it chooses a free one, and prints it."""

    def __init__(
        self, state: Path, port: int, *options: str, shell: dict[str, str] | None = None, tools: Path | None = None
    ) -> None:
        folders = ["--state", str(state), *(["--tools", str(tools)] if tools else [])]
        command = [sys.executable, "-m", "infra.local", *folders, "run", "--port", str(port), *options]
        self.state = state
        self.lines: list[str] = []
        self.tap: Tap | None = None
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=clean_shell() | (shell or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output: SimpleQueue[str | None] = SimpleQueue()
        self.reader = Thread(target=self.read_output, daemon=True)
        self.reader.start()

    def read_output(self) -> None:
        """Read all output, because a process stops when the pipe of its output is full."""
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.output.put(line)
        self.output.put(None)

    def read_until(self, text: str) -> str:
        """Read output until a line contains the text, and return this line. Fails if the process ends first."""
        for line in iter(self.output.get, None):
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"ended without {text!r}: {''.join(self.lines)}")

    @property
    def url(self) -> str:
        """Return the URL of a tap, which checks the exchanges with the Responses API against their contract."""
        self.tap = self.tap or Tap(self.port)
        return f"http://127.0.0.1:{self.tap.port}"

    @property
    def port(self) -> int:
        (port,) = re.findall(r"serves http://127\.0\.0\.1:(\d+)", "".join(self.lines))
        return int(port)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        try:
            self.process.wait(timeout=120)
            self.reader.join(timeout=120)
            while not self.output.empty():
                self.lines.append(self.output.get() or "")
        finally:
            self.process.kill()
            self.process.wait()
            if self.tap:
                self.tap.close()
        return self.process.returncode


def clean_shell() -> dict[str, str]:
    """Return the environment without variables of Stint, OpenAI and AWS, which other tests may have set."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("STINT_", "OPENAI_", "AWS_"))}


def all_end(processes: set[int], within: float) -> bool:
    deadline = time.monotonic() + within
    while any(is_running(pid) for pid in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
