"""The names of schedules: `{automation}.{time}{random}`, each of which is used once.

A schedule is made before the record that names it. So one that no record names may be about to be named, as long as the
request that made it can run. The time in the name tells how old it is, in seconds since 1970.
"""

import secrets
import time
from datetime import UTC, datetime

from stint.domain.cron import to_schedule_expression
from stint.domain.errors import InvalidRequest
from stint.domain.openai.automations import Automation
from stint.domain.schedules import SCHEDULED_TIME, Schedule
from stint.domain.tasks import AutomationTask

NAMED_SECONDS = 900
"""Age from which a schedule that no record names is never named, longer than any request runs."""


def new_schedule(tenant: str, automation: Automation) -> Schedule:
    """Return a schedule for an automation, under a new name. Raises InvalidRequest for its expression."""
    name = f"{automation.id}.{int(time.time()):08x}{secrets.token_hex(2)}"
    task = AutomationTask(tenant=tenant, automation_id=automation.id, schedule=name, scheduled_at=SCHEDULED_TIME)
    expression = expression_of(automation)
    return Schedule(name, expression, automation.timezone or "UTC", task.model_dump_json())


def expression_of(automation: Automation) -> str:
    """Return the expression of an automation's schedule.

    Raises:
        InvalidRequest: `run_at` is not in the future, or the expression of cron is refused.
    """
    if automation.run_at is None:
        return to_schedule_expression(automation.expression or "")
    if automation.run_at <= time.time():
        message = "run_at is in the past. Set it to a later time, in seconds since 1970."
        raise InvalidRequest(message, code="run_at_in_past", param="run_at")
    return f"at({datetime.fromtimestamp(automation.run_at, UTC):%Y-%m-%dT%H:%M:%S})"


def may_be_named(schedule: str) -> bool:
    """Return whether a request may be about to store the name of a schedule."""
    try:
        made_at = int(schedule.rpartition(".")[2][:8], 16)
    except ValueError:
        return False
    return abs(time.time() - made_at) < NAMED_SECONDS
