"""Events that begin turns and responses, through the whole system."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from infra.local.engine import ROOT
from infra.local.intrinsics import STACK
from tests.system.background import System, eventually, running_system
from tests.system.run_process import clean_shell


class EventBusFixture:
    """A bus, and a queue that hears of all that the worker tells."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.events: Any = system.engine.client("events")
        self.sqs: Any = system.engine.client("sqs")
        self.url = self.sqs.create_queue(QueueName="heard")["QueueUrl"]
        arn = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.events.put_rule(Name="heard", EventBusName=STACK, EventPattern=json.dumps({"source": ["stint"]}))
        self.events.put_targets(Rule="heard", EventBusName=STACK, Targets=[{"Id": "queue", "Arn": arn}])

    def put(self, kind: str, detail: Any, source: str = "test", bus: str = STACK) -> str:
        """Put an event on a bus, and return its id."""
        entry = {"Source": source, "DetailType": kind, "Detail": json.dumps(detail), "EventBusName": bus}
        answer = self.events.put_events(Entries=[entry])
        assert answer["FailedEntryCount"] == 0
        return str(answer["Entries"][0]["EventId"])

    def hear(self) -> dict[str, Any]:
        """Wait for the next end that is told."""
        [message, *_] = eventually(lambda: self.sqs.receive_message(QueueUrl=self.url).get("Messages") or [], bool, 20)
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        heard: dict[str, Any] = json.loads(message["Body"])
        return heard

    def close(self) -> None:
        self.events.close()
        self.sqs.close()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("events")) as system:
        yield system


@pytest.fixture(scope="module")
def office(system: System) -> Iterator[EventBusFixture]:
    office = EventBusFixture(system)
    yield office
    office.close()


@pytest.fixture
def http(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=system.run.url, trust_env=False, timeout=120) as client:
        yield client


def invoke(system: System, event: Path) -> Any:
    """`make invoke` beside the system that runs."""
    command = [sys.executable, "-m", "infra.local", "--state", str(system.run.state), "invoke", "worker", str(event)]
    environment = clean_shell() | {"PYTHONPATH": "layers/core:."}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=40)
    return json.loads(done.stdout)


def test_an_event_of_the_bus_begins_a_turn(office: EventBusFixture, http: httpx.Client) -> None:
    agent = http.post("/v1/agents", json={"agent_config": {"model": "scripted/demo", "instructions": ""}}).json()
    path = f"/v1/agents/{agent['agent_id']}/session"
    session = http.post(path, json={"session_name": "orders"}).json()

    office.put(
        "Stint Turn Requested", agent | session | {"messages": [{"role": "user", "content": "say: Order 7 was paid."}]}
    )
    end = office.hear()

    assert (end["source"], end["detail-type"]) == ("stint", "Stint Turn Completed")
    detail = end["detail"]
    assert {name: detail[name] for name in ("agent_id", "session_id", "status")} == agent | session | {
        "status": "completed"
    }
    turn = http.get(f"{path}/{session['session_id']}/turn/{detail['turn_id']}").json()
    assert turn["output_message"]["content"] == "Order 7 was paid."


def test_an_event_of_the_bus_begins_a_response(office: EventBusFixture, system: System) -> None:
    office.put("Stint Response Requested", {"model": "scripted/demo", "input": "say: Thank you."})

    end = office.hear()

    assert end["detail-type"] == "Stint Response Completed"
    response = system.client.responses.retrieve(end["detail"]["response_id"])
    assert (response.status, response.output_text) == ("completed", "Thank you.")


def test_an_invocation_that_comes_again_begins_nothing(office: EventBusFixture, system: System, tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    asked = {"model": "scripted/demo", "input": "say: Once."}
    event.write_text(json.dumps({"id": "only-once", "detail-type": "Stint Response Requested", "detail": asked}))

    first, second = invoke(system, event), invoke(system, event)

    assert first == second
    assert first["status"] == "completed"
    assert office.hear()["detail"] == first
    assert system.client.responses.retrieve(first["response_id"]).output_text == "Once."


def test_an_event_that_cannot_be_read_is_dropped(office: EventBusFixture, system: System) -> None:
    office.put("Stint Turn Requested", {"agent_id": "none"})

    lines = eventually(lambda: system.lines("was dropped"), bool, 15)

    assert "messages" in lines[0]
    assert "Traceback" not in system.log()


def test_the_tenant_is_set_by_the_rule_and_nothing_that_the_sender_writes(
    office: EventBusFixture, system: System
) -> None:
    event = {"model": "scripted/demo", "input": "say: Mine.", "tenant": "victim", "metadata": {"number": "8"}}

    office.put("Stint Response Requested", event, source="victim")
    end = office.hear()

    assert system.client.responses.retrieve(end["detail"]["response_id"]).output_text == "Mine."
    assert system.tenants() == {"default"}


def test_events_of_another_bus_and_completion_events_start_nothing(office: EventBusFixture, system: System) -> None:
    event = {"model": "scripted/demo", "input": "say: Nothing.", "metadata": {"number": "7"}}

    office.put("Stint Response Requested", event, bus="default")
    office.put("Stint Response Completed", event, source="stint")
    office.put("Stint Response Requested", event | {"metadata": {"number": "7.1"}})
    told, end = office.hear(), office.hear()

    assert "metadata" in told["detail"]
    assert system.begun("number", "7.1") == [end["detail"]["response_id"]]
    assert system.begun("number", "7") == []


def test_the_end_of_a_response_in_the_background_is_told_too(office: EventBusFixture, system: System) -> None:
    queued = system.client.responses.create(model="scripted/demo", input="fail: before", background=True)

    end = office.hear()

    assert end["detail-type"] == "Stint Response Failed"
    assert (end["detail"]["response_id"], end["detail"]["status"]) == (queued.id, "failed")
    assert end["detail"]["error"]["code"]


def test_a_response_of_an_event_survives_its_worker(office: EventBusFixture, system: System) -> None:
    event = {"model": "scripted/demo", "input": "slow: 2\nsay: At last.", "metadata": {"number": "9"}}
    event_id = office.put("Stint Response Requested", event)
    [response_id] = eventually(lambda: system.begun("number", "9"), bool, 20)
    eventually(lambda: system.attempts(response_id), (1).__eq__, 20)

    system.kill_workers()
    end = office.hear()

    assert (end["detail"]["response_id"], end["detail"]["status"]) == (response_id, "completed")
    assert end["detail"]["event_id"] == event_id
    assert system.attempts(response_id) == 2


def test_the_example_of_the_documentation_runs(system: System) -> None:
    command = [sys.executable, "docs/examples/events.py", f"http://127.0.0.1:{system.run.port}", str(system.run.state)]

    done = subprocess.run(command, cwd=ROOT, env=clean_shell(), capture_output=True, text=True, check=False, timeout=40)

    assert done.returncode == 0, done.stderr
    assert "Stint Response Completed" in done.stdout
    assert "answer: Order 7 was paid." in done.stdout
