"""The clock of schedules: it sends their payloads to the queues of the engine, as EventBridge Scheduler does.

The engine keeps schedules and their groups. Its own clock has neither time zones nor the scheduled time in payloads, so
it is off (`engine_process.py`), and this process looks for what is due every TICK_SECONDS.

A payload is sent at least once: again if this process ends between a message and its note of it. So a start can repeat
those of the last MISSED_MINUTES, which are known by their time. A recurring time is not sent later than that, while
Scheduler retries for a day: after a night without a local cloud, nobody waits for what it missed. A one-time schedule
is sent however late, and deleted then, since nothing else would end it.

When clocks change, a local time that is skipped does not occur, and one that is repeated occurs once, the first time.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#daylist-savings-time
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from botocore.exceptions import BotoCoreError, ClientError
from infra.local.cloud import Cloud
from infra.local.engine import RunningEngine
from infra.local.queues import Log, Queues
from infra.local.system import System

from stint.domain.schedules import SCHEDULED_TIME

TICK_SECONDS = 2.0
MISSED_MINUTES = 10
MINUTE = timedelta(minutes=1)
EVERY = 1_000_000
"""Schedules of a group that are read at once. The engine has no pages."""
CRON = re.compile(r"cron\(([0-9,*?-]+) ([0-9,*?-]+) ([0-9,*?-]+) ([0-9,*?-]+) ([0-9,*?-]+) \*\)")
AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")


@dataclass(frozen=True)
class LocalSchedule:
    """A schedule of the engine. It never changes, because its name is not used again."""

    name: str
    group: str
    expression: str
    zone: ZoneInfo
    created_at: datetime
    queue_arn: str
    payload: str

    @classmethod
    def read(cls, found: dict[str, Any]) -> "LocalSchedule":
        return cls(
            name=found["Name"],
            group=found["GroupName"],
            expression=found["ScheduleExpression"],
            zone=ZoneInfo(found["ScheduleExpressionTimezone"]),
            created_at=found["CreationDate"].astimezone(UTC),
            queue_arn=found["Target"]["Arn"],
            payload=found["Target"]["Input"],
        )

    @property
    def once_at(self) -> datetime | None:
        """Return the time of a one-time schedule."""
        match = AT.fullmatch(self.expression)
        return datetime.fromisoformat(match[1]).replace(tzinfo=self.zone).astimezone(UTC) if match else None

    def due_between(self, after: datetime, until: datetime) -> list[datetime]:
        """Return the times of the schedule after a time, and at `until` at the latest.

        A one-time schedule is due until it is deleted.
        """
        if self.once_at is not None:
            return [self.once_at] if self.once_at <= until else []
        fields = CRON.fullmatch(self.expression)
        if fields is None:
            return []
        first = max(after, self.created_at).replace(second=0, microsecond=0) + MINUTE
        minutes = [first + number * MINUTE for number in range((until - first) // MINUTE + 1)]
        return [minute for minute in minutes if occurs(fields.groups(), minute.astimezone(self.zone))]

    def payload_at(self, moment: datetime) -> str:
        """Return the payload that is sent for a time."""
        return self.payload.replace(SCHEDULED_TIME, moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def occurs(fields: tuple[str, ...], local: datetime) -> bool:
    """Return whether a local time is one of `minute hour day month weekday`, where Sunday is 1."""
    values = (local.minute, local.hour, local.day, local.month, local.isoweekday() % 7 + 1)
    return not local.fold and all(has(field, value) for field, value in zip(fields, values, strict=True))


def has(field: str, value: int) -> bool:
    if field in ("*", "?"):
        return True
    spans = [[int(number) for number in span.split("-")] for span in field.split(",")]
    return any(span[0] <= value <= span[-1] for span in spans)


class Clock:
    """Sends the payloads of schedules of some groups when they are due. `log` gets what it cannot send."""

    def __init__(self, engine: RunningEngine, queues: Queues, groups: list[str], log: Log, now: float) -> None:
        self._client = engine.client("scheduler")
        self._queues, self._groups, self._log = queues, groups, log
        self._known: dict[str, LocalSchedule] = {}
        self._refused: set[str] = set()
        self._looked_at = datetime.fromtimestamp(now, UTC) - MISSED_MINUTES * MINUTE

    def close(self) -> None:
        self._client.close()

    def send_due(self, now: float) -> None:
        """Send what has become due since the last call, but no recurring time of more than MISSED_MINUTES ago."""
        until = datetime.fromtimestamp(now, UTC)
        after = max(self._looked_at, until - MISSED_MINUTES * MINUTE)
        for schedule in self._read():
            for moment in schedule.due_between(after, until):
                self._queues.open(schedule.queue_arn).send(schedule.payload_at(moment))
            if schedule.once_at is not None and schedule.once_at <= until:
                self._delete(schedule)
        # Not before all are sent: after an error, all of them are looked at again.
        self._looked_at = until

    def _read(self) -> list[LocalSchedule]:
        listed = [
            each
            for group in self._groups
            for each in self._client.list_schedules(GroupName=group, MaxResults=EVERY)["Schedules"]
        ]
        self._known = {each["Arn"]: self._known.get(each["Arn"]) or self._get(each) for each in listed}
        return [each for each in self._known.values() if self._is_supported(each)]

    def _get(self, listed: dict[str, Any]) -> LocalSchedule:
        return LocalSchedule.read(self._client.get_schedule(Name=listed["Name"], GroupName=listed["GroupName"]))

    def _is_supported(self, schedule: LocalSchedule) -> bool:
        if AT.fullmatch(schedule.expression) or CRON.fullmatch(schedule.expression):
            return True
        if schedule.name not in self._refused:
            self._refused.add(schedule.name)
            self._log("schedules", f"{schedule.name}: the local cloud has no schedules of {schedule.expression}")
        return False

    def _delete(self, schedule: LocalSchedule) -> None:
        with contextlib.suppress(self._client.exceptions.ResourceNotFoundException):
            self._client.delete_schedule(Name=schedule.name, GroupName=schedule.group)


def create_groups(engine: RunningEngine, groups: list[str]) -> None:
    """Create groups of schedules in the engine, unless they exist."""
    with contextlib.closing(engine.client("scheduler")) as client:
        for group in groups:
            with contextlib.suppress(client.exceptions.ConflictException):
                client.create_schedule_group(Name=group)


def name_groups(system: System) -> list[str]:
    """Return the names of the groups of schedules of the template."""
    return [str(group["Name"]) for group in system.resolved("AWS::Scheduler::ScheduleGroup").values()]


@contextlib.asynccontextmanager
async def serving_schedules(cloud: Cloud, log: Log) -> AsyncIterator[None]:
    """Create the groups of schedules of the template, and send what is due in them. `log` gets (subject, line)."""
    groups = name_groups(cloud.system)
    if not groups:
        yield
        return
    await asyncio.to_thread(create_groups, cloud.engine, groups)
    with contextlib.closing(Clock(cloud.engine, cloud.queues, groups, log, time.time())) as clock:
        ticking = asyncio.create_task(tick(clock))
        try:
            yield
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])


async def tick(clock: Clock) -> None:
    while True:
        # The engine has died, which `make run` detects, or is too busy to respond.
        with contextlib.suppress(BotoCoreError, ClientError):
            await asyncio.to_thread(clock.send_due, time.time())
        await asyncio.sleep(TICK_SECONDS)
