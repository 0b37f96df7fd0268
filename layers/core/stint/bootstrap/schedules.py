"""Composition of the schedules of automations, for the functions that create or delete one."""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stint.settings import Settings

if TYPE_CHECKING:
    from stint.domain.schedules import Schedules


def make_schedules(settings: Settings) -> "Schedules":
    """Return the schedules of the settings' group, which send tasks to the worker's queue."""
    from stint.aws.environment import read_environment  # noqa: PLC0415 - few requests need schedules
    from stint.aws.schedules import EventBridgeSchedules, ScheduleTarget  # noqa: PLC0415
    from stint.domain.schedules import NoSchedules  # noqa: PLC0415

    if not settings.schedule_group:
        return NoSchedules()
    environment = read_environment()
    queue_arn = queue_arn_of(settings.queue_url, environment.region, partition_of(settings.schedule_role_arn))
    target = ScheduleTarget(settings.schedule_group, settings.schedule_role_arn, queue_arn)
    return EventBridgeSchedules(environment, target)


def queue_arn_of(url: str, region: str, partition: str) -> str:
    """Return the ARN of a queue in the own region, whose URL ends with `/<account>/<name>`."""
    account, _, name = urlsplit(url).path.strip("/").partition("/")
    return f"arn:{partition}:sqs:{region}:{account}:{name}"


def partition_of(arn: str) -> str:
    return arn.split(":")[1] if arn else "aws"
