"""Schedules of the local cloud: made by the adapter, kept by the engine, and sent by the local clock."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from infra.local.engine import Engine
from infra.local.engine_process import replace_scheduler
from infra.local.queues import Queues
from infra.local.schedules import Clock, LocalSchedule, create_groups

from stint.aws.environment import AwsEnvironment
from stint.aws.schedules import EventBridgeSchedules, ScheduleTarget
from stint.domain.cron import to_schedule_expression
from stint.domain.errors import InvalidRequest
from stint.domain.schedules import SCHEDULED_TIME, Schedule

GROUP, ROLE = "test-automations", "arn:aws:iam::000000000000:role/ScheduleRole"
PAYLOAD = f'{{"automation_id": "a", "scheduled_at": "{SCHEDULED_TIME}"}}'
# Later than each creation, which has the time of the engine.
START = datetime(2040, 1, 2, 8, 59, 30, tzinfo=UTC).timestamp()


class Local:
    """A clock of an engine, whose schedules are made by the adapter and sent to a queue of their own."""

    def __init__(self, engine: Engine, now: float = START) -> None:
        running = engine.running
        self.sqs = running.client("sqs")
        self.scheduler = running.client("scheduler")
        self.url = self.sqs.create_queue(QueueName="scheduled")["QueueUrl"]
        arn = f"arn:aws:sqs:{running.region}:000000000000:scheduled"
        self.log: list[str] = []
        self.queues = Queues(running, lambda subject, line: self.log.append(line))
        self.clock = Clock(running, self.queues, [GROUP], lambda subject, line: self.log.append(line), now)
        create_groups(running, [GROUP])
        self.schedules = EventBridgeSchedules(AwsEnvironment(running.environment()), ScheduleTarget(GROUP, ROLE, arn))

    def close(self) -> None:
        self.clock.close()
        self.queues.close()
        self.sqs.delete_queue(QueueUrl=self.url)
        for name in self.names():
            self.scheduler.delete_schedule(Name=name, GroupName=GROUP)

    def names(self) -> list[str]:
        return [each["Name"] for each in self.scheduler.list_schedules(GroupName=GROUP)["Schedules"]]

    def received(self) -> list[str]:
        """Return the bodies of the messages that have been sent since the last call."""
        bodies = []
        while messages := self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                bodies.append(message["Body"])
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return bodies


@pytest.fixture
async def local(engine: Engine) -> AsyncIterator[Local]:
    with contextlib.closing(Local(engine)) as local:
        yield local
        await local.schedules.close()


def sent_at(text: str) -> str:
    return PAYLOAD.replace(SCHEDULED_TIME, text)


async def test_a_schedule_arrives_in_the_queue_once_with_its_time_each_time_it_is_due(local: Local) -> None:
    await local.schedules.create(Schedule("daily.1", to_schedule_expression("0 10 * * *"), "Europe/Berlin", PAYLOAD))

    local.clock.send_due(START)
    assert local.received() == []
    for later in (60, 62, 120):
        local.clock.send_due(START + later)

    assert local.received() == [sent_at("2040-01-02T09:00:00Z")]
    local.clock.send_due(START + 86_430)
    assert local.received() == [sent_at("2040-01-03T09:00:00Z")]
    assert local.names() == ["daily.1"]


async def test_a_one_time_schedule_is_sent_once_and_deletes_itself(local: Local) -> None:
    await local.schedules.create(Schedule("once.1", "at(2040-01-02T09:00:05)", "UTC", PAYLOAD))

    local.clock.send_due(START + 34)
    assert (local.received(), local.names()) == ([], ["once.1"])
    local.clock.send_due(START + 35)
    local.clock.send_due(START + 36)

    assert (local.received(), local.names()) == ([sent_at("2040-01-02T09:00:05Z")], [])


async def test_a_deleted_schedule_is_not_sent_and_both_calls_may_be_repeated(local: Local) -> None:
    every = Schedule("every.1", "cron(* * * * ? *)", "UTC", PAYLOAD)
    for _ in range(2):
        await local.schedules.create(every)
    local.clock.send_due(START + 31)
    assert len(local.received()) == 10  # those of the last minutes, as after a start

    for _ in range(2):
        await local.schedules.delete("every.1")
    local.clock.send_due(START + 91)

    assert local.received() == []


async def test_an_unknown_time_zone_is_refused(local: Local) -> None:
    for zone in ("Mars/Olympus", "", "../../etc/passwd", "/etc/passwd"):
        with pytest.raises(InvalidRequest) as raised:
            await local.schedules.create(Schedule("zone.1", "cron(0 9 * * ? *)", zone, PAYLOAD))
        assert raised.value.param == "timezone"
    assert local.names() == []


async def test_other_schedules_are_told_once_and_stop_no_others(local: Local) -> None:
    await local.schedules.create(Schedule("rate.1", "rate(5 minutes)", "UTC", PAYLOAD))
    await local.schedules.create(Schedule("every.1", "cron(0 9 * * ? *)", "UTC", PAYLOAD))

    for later in (30, 31):
        local.clock.send_due(START + later)

    assert local.received() == [sent_at("2040-01-02T09:00:00Z")]
    assert local.log == ["rate.1: the local cloud has no schedules of rate(5 minutes)"]


async def test_schedules_survive_a_restart_after_which_only_the_last_minutes_are_made_up_for(tmp_path: Path) -> None:
    with Engine(tmp_path) as engine:
        local = Local(engine)
        await local.schedules.create(Schedule("hourly.1", "cron(0 * * * ? *)", "UTC", PAYLOAD))
        await local.schedules.create(Schedule("once.1", "at(2040-01-02T10:30:00)", "UTC", PAYLOAD))
        await local.schedules.close()
        local.clock.close()

    hours = datetime(2040, 1, 2, 14, 5, tzinfo=UTC).timestamp()
    with Engine(tmp_path) as engine:
        local = Local(engine, hours)
        assert sorted(local.names()) == ["hourly.1", "once.1"]
        local.clock.send_due(hours)

        assert sorted(local.received()) == [sent_at("2040-01-02T10:30:00Z"), sent_at("2040-01-02T14:00:00Z")]
        local.close()


def times_of(expression: str, zone: str, after: datetime, until: datetime) -> list[str]:
    schedule = LocalSchedule("name", GROUP, expression, ZoneInfo(zone), after, "", PAYLOAD)
    return [f"{moment:%m-%dT%H:%MZ}" for moment in schedule.due_between(after, until)]


@pytest.mark.parametrize(
    ("month", "times"),
    [
        # The clocks skip 02:00 to 03:00 on 29 March, and repeat it on 25 October.
        (3, ["03-28T01:30Z", "03-30T00:30Z"]),
        (10, ["10-24T00:30Z", "10-25T00:30Z", "10-26T01:30Z"]),
    ],
)
def test_a_skipped_time_does_not_occur_and_a_repeated_one_occurs_once(month: int, times: list[str]) -> None:
    first, last = {3: (28, 31), 10: (24, 27)}[month]
    after, until = datetime(2026, month, first, tzinfo=UTC), datetime(2026, month, last, tzinfo=UTC)

    assert times_of("cron(30 2 * * ? *)", "Europe/Berlin", after, until) == times


def test_times_are_after_the_creation_and_none_is_lost_between_two_looks() -> None:
    after, until = datetime(2026, 1, 1, 0, 0, 0, tzinfo=UTC), datetime(2026, 1, 1, 0, 3, 0, tzinfo=UTC)
    later = datetime(2026, 1, 1, 0, 4, 59, tzinfo=UTC)

    assert times_of("cron(* * * * ? *)", "UTC", after, until) == ["01-01T00:01Z", "01-01T00:02Z", "01-01T00:03Z"]
    assert times_of("cron(* * * * ? *)", "UTC", until, later) == ["01-01T00:04Z"]
    assert times_of("cron(* * * * ? *)", "UTC", later, later) == []
    assert times_of("cron(0-1,5 0 ? * 5 *)", "UTC", after, later) == ["01-01T00:01Z"]  # a Thursday
    assert times_of("cron(0-1,5 0 ? * 1-4,6-7 *)", "UTC", after, later) == []


def test_the_clock_of_the_engine_is_off() -> None:
    scheduler: Any = SimpleNamespace(_create_schedule=lambda name, body: "created", start_scheduler=None)

    replace_scheduler(scheduler)

    assert scheduler.start_scheduler() is None
    assert scheduler._create_schedule("name", {"ScheduleExpressionTimezone": "Asia/Tokyo"}) == "created"
