"""A running system for tests of the worker, with its processes, its queues, and a client."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from infra.local.engine import RunningEngine
from infra.local.state import State
from openai import DefaultHttpxClient, OpenAI
from openai.types.responses import Response
from tests.system.run_process import Run

T = TypeVar("T")

ENDED = ("completed", "incomplete", "failed", "cancelled")
SHELL = {"STINT_SCRIPTED_WORD_SECONDS": "0.005", "STINT_LEASE_SECONDS": "3"}


@dataclass(frozen=True)
class System:
    """`make run` with a short lease and a short visibility timeout."""

    run: Run
    engine: RunningEngine
    client: OpenAI

    def wait_for(self, response_id: str, *statuses: str, within: float = 60) -> Response:
        """Read a response until it has one of these statuses."""
        return eventually(
            lambda: self.client.responses.retrieve(response_id),
            lambda response: response.status in (statuses or ENDED),
            within,
        )

    def workers(self) -> set[int]:
        """Return the processes of buffered functions. Without requests for agents, they are those of the worker."""
        columns = ["ps", "-ww", "-eo", "pid=,ppid=,args="]
        table = subprocess.run(columns, capture_output=True, text=True, check=True).stdout
        rows = [line.split(None, 2) for line in table.splitlines()]
        return {
            int(pid) for pid, parent, args in rows if int(parent) == self.run.process.pid and "awslambdaric" in args
        }

    def kill_workers(self) -> None:
        for pid in eventually(self.workers, bool, 60):
            os.kill(pid, signal.SIGKILL)

    def log(self, function: str = "stint-worker") -> str:
        file = self.run.state / "logs" / f"{function}.log"
        return file.read_text() if file.exists() else ""

    def begun(self, key: str, value: str) -> list[str]:
        """Return the ids of the responses with this metadata."""
        listed = self.client.get("/responses", cast_to=dict[str, Any])
        return [each["id"] for each in listed["data"] if each["metadata"].get(key) == value]

    def attempts(self, response_id: str) -> int:
        """Return the number of attempts to run a response."""
        dynamodb: Any = self.engine.client("dynamodb")
        key = {"pk": {"S": f"default#response:{response_id}"}, "sk": {"S": "lease"}}
        try:
            item = dynamodb.get_item(TableName=self.engine.outputs["TableName"], Key=key).get("Item", {})
        finally:
            dynamodb.close()
        return int(item["attempts"]["N"]) if "attempts" in item else 0

    def tenants(self) -> set[str]:
        """Return the tenants that have records in the table."""
        dynamodb: Any = self.engine.client("dynamodb")
        try:
            items = dynamodb.scan(TableName=self.engine.outputs["TableName"])["Items"]
        finally:
            dynamodb.close()
        return {item["pk"]["S"].partition("#")[0] for item in items}

    def lines(self, text: str) -> list[str]:
        """Return the worker's log lines that contain a text."""
        return [line for line in self.log().splitlines() if text in line]

    def receive(self, queue: str, containing: str, within: float = 60) -> dict[str, Any]:
        """Receive and delete the next message of a queue whose body contains a text.

        `queue` is the name of its output in infra/aws/data.yaml. The queue may have messages of earlier tests.
        """
        sqs: Any = self.engine.client("sqs")
        url = self.engine.outputs[queue]

        def receive() -> list[dict[str, Any]]:
            found = sqs.receive_message(QueueUrl=url).get("Messages", [])
            return [message for message in found if containing in message["Body"]]

        try:
            messages = eventually(receive, bool, within)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=messages[0]["ReceiptHandle"])
        finally:
            sqs.close()
        return messages[0]


@contextmanager
def running_system(state: Path) -> Iterator[System]:
    run = Run(state, 0, "--visibility", "1", shell=SHELL)
    run.read_until("Ctrl-C stops")
    engine = State(state).published_engine()
    assert engine is not None
    http = DefaultHttpxClient(trust_env=False)
    with OpenAI(base_url=f"{run.url}/v1", api_key="key", http_client=http) as client:
        yield System(run, engine, client)
    assert run.stop() == 0


def eventually(read: Callable[[], T], holds: Callable[[T], bool], within: float) -> T:
    """Read until the value fulfils a condition, and return it."""
    deadline = time.monotonic() + within
    while not holds(found := read()):
        assert time.monotonic() < deadline, f"in {within} s nothing more came than {found}"
        time.sleep(0.1)
    return found
