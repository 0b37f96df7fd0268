"""Work for the worker of the whole system: messages of its queue, events of the bus."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import RunningEngine
from infra.local.intrinsics import STACK
from infra.local.state import State
from tests.system.run_process import Run


@contextlib.contextmanager
def running(state: Path) -> Iterator[RunningEngine]:
    """The engine of a system that runs."""
    run = Run(state, 0, "--visibility", "1")
    run.read_until("Ctrl-C stops")
    engine = State(state).published_engine()
    assert engine is not None
    yield engine
    assert run.stop() == 0


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


def log_of_worker(state: Path) -> str:
    file = state / "logs" / "stint-worker.log"
    return file.read_text() if file.exists() else ""


def waiting(sqs: Any, url: str) -> int:
    """How many messages a queue holds, whoever has them."""
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(counts["ApproximateNumberOfMessages"]) + int(counts["ApproximateNumberOfMessagesNotVisible"])


def in_time(deadline: float) -> bool:
    time.sleep(0.05)
    return time.monotonic() < deadline


def test_an_event_of_the_bus_reaches_the_worker(state: Path) -> None:
    with running(state) as engine:
        events = engine.client("events")
        before, deadline = log_of_worker(state), time.monotonic() + 60

        entry = {"Source": "test", "DetailType": "Stint Turn Requested", "Detail": json.dumps({"agent_id": "none"})}
        failed = events.put_events(Entries=[entry | {"EventBusName": STACK}])["FailedEntryCount"]

        events.close()
        assert failed == 0
        while log_of_worker(state) == before:
            assert in_time(deadline)


def test_a_message_of_the_queue_reaches_the_worker_after_another_start_too(state: Path) -> None:
    for number in range(2):
        with running(state) as engine:
            sqs, url = engine.client("sqs"), engine.outputs["WorkQueueUrl"]
            before, deadline = log_of_worker(state), time.monotonic() + 60

            sqs.send_message(QueueUrl=url, MessageBody=json.dumps({"kind": "nothing", "number": number}))

            while waiting(sqs, url) or log_of_worker(state) == before:
                assert in_time(deadline)
            sqs.close()
