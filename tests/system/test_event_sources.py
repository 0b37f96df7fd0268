"""Queues and rules that invoke functions, with real processes."""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from infra.local.cloud import Cloud, Plan, running_cloud
from infra.local.engine import Engine
from infra.local.errors import LocalCloudError
from infra.local.event_sources import serving_sources
from tests.system.conftest import APPS

from stint.aws.environment import AwsEnvironment
from stint.aws.schedules import EventBridgeSchedules, ScheduleTarget
from stint.domain.schedules import SCHEDULED_TIME, Schedule

pytestmark = pytest.mark.asyncio(loop_scope="module")

VISIBILITY = 1
TEMPLATE = APPS / "sources" / "template.yaml"
Mark = dict[str, Any]


@dataclass
class Sources:
    """The function of `apps/sources` with its sources; it leaves a file for each message or event that it got."""

    cloud: Cloud
    sqs: Any
    events: Any
    urls: dict[str, str]
    marks: Path
    log: list[str]

    def send(self, *bodies: str) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        self.sqs.send_message_batch(QueueUrl=self.urls["Feed"], Entries=entries)

    def put(self, kind: str, **detail: str) -> None:
        entry = {"Source": "test", "DetailType": kind, "Detail": json.dumps(detail), "EventBusName": "sources"}
        assert self.events.put_events(Entries=[entry])["FailedEntryCount"] == 0

    async def noted(self, name: str, count: int = 1, within: float = 10) -> list[Mark]:
        """Wait for a number of events of the function, and return them."""
        await eventually(lambda: len(self.noted_so_far(name)) >= count, within)
        return self.noted_so_far(name)

    def noted_so_far(self, name: str) -> list[Mark]:
        file = self.marks / name
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def waiting(self, queue: str = "Feed") -> tuple[int, int]:
        """How many messages a queue has, and how many are with a receiver."""
        answer = self.sqs.get_queue_attributes(QueueUrl=self.urls[queue], AttributeNames=["All"])["Attributes"]
        return int(answer["ApproximateNumberOfMessages"]), int(answer["ApproximateNumberOfMessagesNotVisible"])

    async def arrives(self, queue: str) -> str:
        """The body of a message that comes into a queue."""
        found: list[Any] = []

        def look() -> bool:
            found.extend(self.sqs.receive_message(QueueUrl=self.urls[queue]).get("Messages", []))
            return bool(found)

        await eventually(look, 60)
        self.sqs.delete_message(QueueUrl=self.urls[queue], ReceiptHandle=found[0]["ReceiptHandle"])
        return str(found[0]["Body"])


def ignore(subject: str, line: str) -> None:
    return


async def eventually(holds: Callable[[], bool], within: float) -> None:
    deadline = time.monotonic() + within
    while not await asyncio.to_thread(holds):
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def made_queues(sqs: Any, prefix: str) -> AsyncIterator[tuple[dict[str, str], dict[str, str]]]:
    """The URLs of a test's queues, and the outputs that the template asks for."""
    urls = {name: sqs.create_queue(QueueName=f"{prefix}-{name}")["QueueUrl"] for name in ("Dead", "Failures")}
    arns = {name: f"arn:aws:sqs:us-east-1:000000000000:{prefix}-{name}" for name in ("Feed", "Dead", "Failures")}
    redrive = json.dumps({"deadLetterTargetArn": arns["Dead"], "maxReceiveCount": 3})
    urls["Feed"] = sqs.create_queue(
        QueueName=f"{prefix}-Feed", Attributes={"VisibilityTimeout": "900", "RedrivePolicy": redrive}
    )["QueueUrl"]
    yield urls, {"FeedArn": arns["Feed"], "FailuresArn": arns["Failures"]}
    for url in urls.values():
        sqs.delete_queue(QueueUrl=url)


@contextlib.asynccontextmanager
async def running_sources(engine: Engine, marks: Path) -> AsyncIterator[Sources]:
    sqs, events = (engine.running.client(service) for service in ("sqs", "events"))
    plan = Plan({"STINT_MARK_FOLDER": str(marks)}, template=TEMPLATE, concurrency=4)
    with contextlib.closing(sqs), contextlib.closing(events):
        async with made_queues(sqs, marks.name) as (urls, outputs):
            running = replace(engine.running, outputs=outputs)
            log: list[str] = []
            async with running_cloud(plan, running, lambda subject, line: log.append(line)) as cloud:
                yield Sources(cloud, sqs, events, urls, marks, log)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sources(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sources]:
    async with (
        running_sources(engine, tmp_path_factory.mktemp("sources", numbered=False)) as sources,
        serving_sources(sources.cloud, lambda subject, line: sources.log.append(line), VISIBILITY),
    ):
        yield sources


async def test_a_message_reaches_the_function_as_lambda_sends_it_and_is_gone(sources: Sources) -> None:
    attributes = {
        "text": {"StringValue": "value", "DataType": "String"},
        "bytes": {"BinaryValue": b"\x00\x01", "DataType": "Binary"},
    }

    sent = sources.sqs.send_message(
        QueueUrl=sources.urls["Feed"], MessageBody="please wörk", MessageAttributes=attributes
    )
    (record,) = await sources.noted("please wörk")

    assert record.pop("receiptHandle")
    system = record.pop("attributes")
    assert system["ApproximateReceiveCount"] == "1"
    assert {"SentTimestamp", "SenderId", "ApproximateFirstReceiveTimestamp"} <= set(system)
    assert record == {
        "messageId": sent["MessageId"],
        "body": "please wörk",
        "messageAttributes": {
            "text": {"stringValue": "value", "stringListValues": [], "binaryListValues": [], "dataType": "String"},
            "bytes": {"binaryValue": "AAE=", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
        },
        "md5OfMessageAttributes": sent["MD5OfMessageAttributes"],
        "md5OfBody": sent["MD5OfMessageBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:sources-Feed",
        "awsRegion": "us-east-1",
    }
    await eventually(lambda: sources.waiting() == (0, 0), 60)


async def test_of_a_batch_only_what_failed_comes_again_and_ends_among_the_dead_letters(sources: Sources) -> None:
    sources.send("fine 1", "fail 2", "fine 3")

    failed = await sources.noted("fail 2", count=3)
    dead = await sources.arrives("Dead")

    assert [record["attributes"]["ApproximateReceiveCount"] for record in failed] == ["1", "2", "3"]
    assert dead == "fail 2"
    assert len(sources.noted_so_far("fine 1")) == len(sources.noted_so_far("fine 3")) == 1
    assert sources.waiting() == (0, 0)


async def test_a_function_error_fails_the_batch(sources: Sources) -> None:
    sources.send("raise an error")

    await sources.noted("raise an error", count=3)

    assert await sources.arrives("Dead") == "raise an error"
    assert len(sources.noted_so_far("raise an error")) == 3


async def test_a_message_survives_the_process_that_was_killed_over_it(sources: Sources) -> None:
    sources.send("dawdle until killed")
    await sources.noted("dawdle until killed")
    killed = sources.cloud.functions.processes("fed")

    for process in killed:
        os.kill(process, signal.SIGKILL)

    again = await sources.noted("dawdle until killed", count=2)
    assert again[-1]["attributes"]["ApproximateReceiveCount"] == "2"
    await eventually(lambda: sources.waiting() == (0, 0), 60)
    assert not killed & sources.cloud.functions.processes("fed")


async def test_a_message_survives_a_time_out(sources: Sources) -> None:
    sources.send("dawdle too long")

    received = await sources.noted("dawdle too long", count=2)

    assert [record["attributes"]["ApproximateReceiveCount"] for record in received] == ["1", "2"]
    await eventually(lambda: sources.waiting() == (0, 0), 60)
    assert any("Task timed out after 1.00 seconds" in line for line in sources.log)


async def test_an_event_that_the_rule_wants_reaches_the_function_and_no_other(sources: Sources) -> None:
    sources.put("Unwanted", do="note", name="unwanted")
    sources.put("Wanted", do="note", name="wanted")

    (event,) = await sources.noted("wanted")

    assert (event["source"], event["detail-type"]) == ("test", "Wanted")
    assert event["detail"] == {"do": "note", "name": "wanted"}
    assert {"version", "id", "account", "time", "region", "resources"} <= set(event)
    assert sources.noted_so_far("unwanted") == []


async def test_a_rule_with_a_transformer_passes_on_what_it_makes_and_nothing_else(sources: Sources) -> None:
    detail = {"do": "note", "name": "shaped", "tenant": 'mine", "tenant": "other', "more": "<type>"}
    sources.put("Shaped", **detail)

    (event,) = await sources.noted("shaped")

    assert event == {"tenant": "fixed", "type": "Shaped", "detail": detail}


async def test_a_schedule_reaches_the_function_of_its_queue(sources: Sources) -> None:
    environment = AwsEnvironment(sources.cloud.engine.environment())
    feed = "arn:aws:sqs:us-east-1:000000000000:sources-Feed"
    schedules = EventBridgeSchedules(environment, ScheduleTarget("sources", "arn:aws:iam::000000000000:role/r", feed))

    await schedules.create(Schedule("once", "at(2026-01-02T03:04:05)", "UTC", f"please {SCHEDULED_TIME}"))
    (record,) = await sources.noted("please 2026-01-02T03:04:05Z")

    assert record["eventSource"] == "aws:sqs"
    await schedules.close()


async def test_an_event_that_failed_for_good_is_kept(sources: Sources) -> None:
    sources.put("Wanted", do="raise", name="hopeless")

    record = json.loads(await sources.arrives("Failures"))

    attempts = sources.noted_so_far("hopeless")
    assert len(attempts) == 2
    assert record["requestPayload"] == attempts[0]
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 2
    assert record["requestContext"]["functionArn"].endswith(":function:fed:$LATEST")
    assert record["responsePayload"]["errorMessage"] == "told to fail"


async def test_what_is_being_worked_on_when_the_cloud_stops_is_given_back(engine: Engine, tmp_path: Path) -> None:
    async with running_sources(engine, tmp_path) as sources:
        async with serving_sources(sources.cloud, ignore):
            sources.send("dawdle at the end")
            await sources.noted("dawdle at the end")
            during = sources.waiting()
        after = sources.waiting()

    assert (during, after) == ((0, 1), (1, 0))


async def test_a_queue_that_is_not_there_is_named(engine: Engine, tmp_path: Path) -> None:
    outputs = dict.fromkeys(("FeedArn", "FailuresArn"), "arn:aws:sqs:us-east-1:000000000000:missing")
    plan = Plan({"STINT_MARK_FOLDER": str(tmp_path)}, template=TEMPLATE)

    async with running_cloud(plan, replace(engine.running, outputs=outputs), ignore) as cloud:
        with pytest.raises(LocalCloudError, match="there is no queue arn:aws:sqs:us-east-1:000000000000:missing"):
            async with serving_sources(cloud, ignore):
                pass
