"""Client of the measured API for tests."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing.connection import Client, Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from infra.local.engine import ROOT
from tests.adversarial.case import Answer, Case, Event, Request
from tests.adversarial.meter import Costs, children_peak_bytes, resident_bytes
from tests.adversarial.peer import PEER, start_peer

SAMPLED_SECONDS = 0.005
MOST_BYTES = 6_000_000
REFUSALS = (b"The body of the request is larger than", b'"code":"url_too_large"')
"""Parts of the responses to what is too large for a small function, though not for others."""


class TooCostly(AssertionError):
    """The process that served a case exceeded its CPU time and was killed, or died."""


class MeasuredApi:
    """A process (`tests.adversarial.process`) that serves each case in a fork."""

    def __init__(self, environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        self.environment = {**os.environ, **wrapper_variables(), "PYTHONPATH": path, **environment}
        self.small = "STINT_MAX_REQUEST_BYTES" in environment
        self.outputs = json.dumps(outputs)
        self.peer = start_peer()

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="stint-"))
        self.path = str(self.folder / "socket")
        self.peer.__enter__()
        program = [sys.executable, "-m", "tests.adversarial.process"]
        with socket.socket(socket.AF_UNIX) as server, (self.folder / "log").open("wb") as log:
            server.bind(self.path)
            server.listen()
            self.process = subprocess.Popen(
                [*program, str(server.fileno()), self.outputs, f"{self.peer.url}/v1"],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[server.fileno()],
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()
        self.peer.__exit__()
        shutil.rmtree(self.folder)

    def run(self, make: Callable[[], Case]) -> dict[str, Costs]:
        """Send the requests of a case, and return the costs of each by its number, method and path.

        With the settings of a small function, a case ends at a request that is too large for it.

        Raises:
            AssertionError: the status of a response is 500 or 504, or an assertion of the case failed.
            TooCostly: the process was killed.
        """
        costs: dict[str, Costs] = {}
        with Client(self.path, "AF_UNIX") as connection:
            pid, held = connection.recv()
            requests = make()
            request = next(requests, None)
            while request is not None:
                answer, each = self.send(connection, pid, held, request)
                costs[f"{len(costs)} {request}"] = each
                if self.small and any(refusal in answer.body for refusal in REFUSALS):
                    return costs
                assert answer.status not in (500, 504), answer.body[:1000]
                try:
                    request = requests.send(answer)
                except StopIteration:
                    request = None
        return costs

    def send(self, connection: Connection, pid: int, held: int, request: Request | Event) -> tuple[Answer, Costs]:
        """Send one request, and measure the memory together with that of the child processes that it starts.

        `held` is the memory of the process before its first request.
        """
        body = request.body.replace(PEER, self.peer.url.encode())
        assert len(body) <= MOST_BYTES, "Lambda accepts no larger request"
        connection.send(replace(request, body=body))
        together = 0
        while not connection.poll(SAMPLED_SECONDS):
            if of_children := children_peak_bytes(pid):
                together = max(together, resident_bytes(str(pid)) + of_children)
        try:
            answer, costs = connection.recv()
        except EOFError:
            log = (self.folder / "log").read_text(errors="replace")
            raise TooCostly(f"the process was killed, or died: {log[-1000:]}") from None
        self.peer.forget()
        return answer, Costs(costs.stretch, costs.cpu, max(costs.grown, together - held))


def wrapper_variables() -> dict[str, str]:
    """Return the defaults that the runtime's wrapper script sets for malloc."""
    script = (ROOT / "layers" / "runtime" / "stint-runtime").read_text()
    return dict(re.findall(r'^export (MALLOC_\w+)="\$\{\1:-(\d+)\}"$', script, re.MULTILINE))
