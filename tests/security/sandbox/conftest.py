"""Runs of the sandbox function: on this machine in namespaces, and as in Lambda, beside its own process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FUNCTION = Path(__file__).parents[3] / "functions" / "sandbox"
DRIVER = """
import json, os, sys
sys.path.insert(0, {function!r})
import app
class Context:
    memory_limit_in_mb = {memory}
    def get_remaining_time_in_millis(self):
        return 60_000
events = json.loads({events!r})
print(json.dumps([app.handler(event, Context()) for event in events]))
"""
LAUNCHER = """
import sys
sys.path.insert(0, {function!r})
import namespaces
sys.exit(namespaces.main(sys.argv[1], sys.argv[2:]))
"""
"""Runs a command in namespaces in which the folder is the machine's."""

Run = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Sandbox:
    """The function in a process of its own. `isolated` is False for the way in which it runs in Lambda."""

    folder: Path
    isolated: bool

    @property
    def owner(self) -> int:
        """Return the user that owns the folder in the way of Lambda: nobody, if this process may give it away."""
        return 65534 if os.getuid() == 0 else os.getuid()

    def run(self, code: str, **event: Any) -> dict[str, Any]:
        return self.run_all({"code": code, **event})[0]

    def run_all(self, *events: dict[str, Any], memory: int = 512) -> list[dict[str, Any]]:
        """Handle events one after the other in one process."""
        driver = self.folder / "driver.py"
        driver.write_text(DRIVER.format(function=str(FUNCTION), memory=memory, events=json.dumps(events)))
        python = [os.path.realpath(sys.executable), "-E", "-s"]
        command = [*python, str(driver)]
        environment = {"PATH": "/usr/bin:/bin", "AWS_SECRET_ACCESS_KEY": "sandbox-secret", "TMPDIR": str(self.folder)}
        if self.isolated:
            environment["SANDBOX_NAMESPACES"] = "1"
        else:  # nobody runs both processes, on a root that has nothing else, as in Lambda
            environment["AWS_EXECUTION_ENV"] = "AWS_Lambda_python3.12"
            command = [*python, "-c", LAUNCHER.format(function=str(FUNCTION)), str(self.folder), *command]
            os.chown(self.folder, self.owner, self.owner)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        results: list[dict[str, Any]] = json.loads(done.stdout)
        return results


@pytest.fixture(params=[True, False], ids=["namespaces", "lambda"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    folder = tmp_path / "run"
    folder.mkdir()
    return Sandbox(folder, request.param)
