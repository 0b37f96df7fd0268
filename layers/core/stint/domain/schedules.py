"""Schedules of EventBridge Scheduler, which send tasks of automations to the worker's queue.

Scheduler sends a payload at least once, so the time of the schedule that it puts in tells whether a task is new. A
schedule is never changed: another one replaces it, by another name. docs/decisions.md, entry 151, has the reasons.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/what-is-scheduler.html
https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.errors import NotSupported, StoreUnavailable

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""What Scheduler replaces in a payload by the time for which it sends it, such as `2026-11-29T15:00:00Z`."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule. A one-time schedule is deleted by Scheduler after it has sent its payload."""

    name: str
    """1 to 64 characters of `[0-9a-zA-Z-_.]`. It is never used again for another schedule."""
    expression: str
    """`cron(...)`, or `at(yyyy-mm-ddThh:mm:ss)`."""
    timezone: str
    """The IANA name of the expression's time zone; `UTC` for `at`."""
    payload: str
    """JSON of an AutomationTask that contains SCHEDULED_TIME."""


class Schedules(Protocol):
    """The schedules of a stack."""

    async def create(self, schedule: Schedule) -> None:
        """Create a schedule; one that exists by this name is left as it is.

        Raises:
            InvalidRequest: the expression or the time zone is refused, which `param` names.
            NotSupported: there are no schedules.
            StoreUnavailable: it may have been created or not.
        """

    async def delete(self, name: str) -> None:
        """Delete a schedule, if it exists. Raises StoreUnavailable."""


class NoSchedules:
    """The schedules of a process that has none, because it is of another function or its stack has no group."""

    async def create(self, schedule: Schedule) -> None:
        """Refuse to create a schedule, by name. Raises NotSupported."""
        raise NotSupported(
            f"Automations need schedules, and this server has none for {schedule.name!r}: "
            "STINT_SCHEDULE_GROUP is not set. Deploy the current template."
        )

    async def delete(self, name: str) -> None:
        """Leave a schedule to the worker, which has the right to delete it. Raises StoreUnavailable."""
        raise StoreUnavailable(f"The schedule {name!r} cannot be deleted here. The worker deletes it.")
