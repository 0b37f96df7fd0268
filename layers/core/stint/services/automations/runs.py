"""The runs of automations in the worker: each task is one delivery of input to a session.

A task has ids only. The record decides what is done, and for whom: the creator's key is read again at each run, and a
run that a request has asked for acts for that request's caller.

    the task                                      the worker
    names the schedule of an active automation    delivers, for the creator
    names another schedule, older than 15 min     deletes that schedule: no record will ever name it
    names another schedule, a younger one         looks again in a minute: a request may be about to store its name
    names an invocation                           delivers what the automation was then, for the caller in its record

    the delivery                                  the invocation   the automation (runs of a schedule only)
    is accepted by the session                    completed        goes on; `once`: completed
    finds the message before still in line        skipped          goes on; `once`: completed
    finds no session, no agent, no right to run   failed           paused with the reason; `once`: completed
    fails for another reason that stays           failed           goes on; `once`: completed
    fails for a reason that may end               (none yet)       the task is delivered again; the last time: failed

The id of an invocation follows from the time of the schedule. Its record has the id of the session or message before
that is made. So a task that arrives twice, or again after its worker has died, makes nothing twice.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Set
from datetime import UTC, datetime

from stint.caller import RequestAttempt
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import id_from_time, name_of, new_id
from stint.domain.openai.automations import PAUSE_REASONS, Automation, InvocationOutcome, InvocationSource
from stint.domain.principals import Principal
from stint.domain.schedules import Schedules
from stint.domain.tasks import AutomationTask, SendTask
from stint.log_keys import add_log_keys
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.services.automations.creators import CreatorKeys
from stint.services.automations.deliveries import FindPrincipal, deliver, deliver_last
from stint.services.automations.schedule_names import may_be_named
from stint.services.automations.targets import Targets
from stint.store.automation_invocations import InvocationRecord, InvocationStore
from stint.store.automations import AutomationStore, FoundAutomation

logger = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 60
"""Seconds after which the worker looks again whether a record names a schedule."""

ATTEMPTS = 5
"""Maximum attempts to change an automation that others change at the same time."""


@dataclass(frozen=True, slots=True)
class AutomationRuns:
    """The runs of a tenant's automations."""

    tenant: str
    store: AutomationStore
    invocations: InvocationStore
    schedules: Schedules
    creators: CreatorKeys
    get_targets: Callable[[], Targets]
    send: SendTask
    lease_seconds: float

    async def handle(self, task: AutomationTask, deadline: float, *, last: bool = False) -> None:
        """Run an automation, unless it has been run for this task. `deadline` is a time of the event loop's clock.

        The `last` delivery of a task ends an invocation that cannot be delivered. Raises StintError to get it again.
        """
        add_log_keys(automation_id=task.automation_id)
        found = await self.find(task.automation_id)
        if task.invocation_id is None:
            await self.run_scheduled(task, found, deadline, last=last)
        elif found is not None:
            await self.run_requested(task.invocation_id, found, deadline, last=last)

    async def find(self, automation_id: str) -> FoundAutomation | None:
        try:
            return await self.store.get(self.tenant, automation_id)
        except NotFound:
            return None

    async def run_scheduled(
        self, task: AutomationTask, found: FoundAutomation | None, deadline: float, *, last: bool
    ) -> None:
        if found is None or found.stored.schedule != task.schedule:
            await self.drop_schedule(task)
            return
        scheduled_at = read_time(task.scheduled_at or "")
        derived_id = id_from_time(scheduled_at, f"{task.automation_id}:{scheduled_at.isoformat()}")
        source = InvocationSource(
            created_at=int(time.time()), scheduled_at=int(scheduled_at.timestamp()), automation=found.stored.resource
        )
        place = task.automation_id, name_of("invocation", derived_id)
        add_log_keys(invocation_id=place[1])
        asked, span = self.new_span(deadline)
        record = await self.invocations.begin(self.tenant, place, new_id(), source, span)

        async def find_principal() -> Principal:
            return await self.creators.read(found.stored)

        keeper = LeaseKeeper(record, self.lease_seconds, deadline, asked + span)
        outcome = await self.run(keeper, found.stored.resource, find_principal, found.stored.end_user, last=last)
        if outcome is not None:
            await self.conclude(task, outcome)

    async def run_requested(self, invocation_id: str, found: FoundAutomation, deadline: float, *, last: bool) -> None:
        add_log_keys(invocation_id=invocation_id)
        asked, span = self.new_span(deadline)
        try:
            record = await self.invocations.acquire(self.tenant, (found.stored.resource.id, invocation_id), span)
        except NotFound:  # its request has not stored it, or it was deleted
            return

        async def find_principal() -> Principal:
            return Principal.from_context(dict(record.source.caller or {}))

        keeper = LeaseKeeper(record, self.lease_seconds, deadline, asked + span)
        automation = record.source.automation or found.stored.resource
        await self.run(keeper, automation, find_principal, record.end_user, last=last)

    def new_span(self, deadline: float) -> tuple[float, float]:
        """Return the time of the event loop's clock, and the seconds of a lease that is acquired now."""
        return asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)

    async def run(
        self,
        keeper: LeaseKeeper[InvocationRecord],
        automation: Automation,
        find_principal: FindPrincipal,
        end_user: str | None,
        *,
        last: bool,
    ) -> InvocationOutcome | None:
        """Deliver an invocation, store its outcome, and return that; None if its automation is being deleted."""
        record = keeper.lease
        if record.outcome is not None:  # a delivery before this one has ended it
            keeper.stop()
            return record.outcome

        pending_id: str | None = None

        async def is_own(message_ids: Set[str]) -> bool:
            nonlocal pending_id
            others = message_ids - {record.object_id}
            pending_id = await self.invocations.find_sent(self.tenant, automation.id, others)
            return pending_id is not None

        attempt = RequestAttempt(object_id=record.object_id, repeated=not record.is_new, rename=record.put_object_id)
        async with keeper.released_on_error():
            # Read again: a deletion that began before the invocation was stored may not have found it.
            if not await self.store.exists(self.tenant, automation.id):
                await keeper.wait_until_stopped()
                await self.invocations.delete(self.tenant, automation.id, record)
                return None
            delivery = deliver(
                self.get_targets(),
                automation.target,
                find_principal,
                end_user,
                attempt,
                is_own=is_own,
                deadline=keeper.deadline,
            )
            outcome = await (deliver_last(delivery) if last else delivery)
            if outcome.status == "skipped":
                outcome = outcome.model_copy(update={"pending_id": pending_id})
            await keeper.wait_until_stopped()
            await record.put_outcome(outcome)
        return outcome

    async def conclude(self, task: AutomationTask, outcome: InvocationOutcome) -> None:
        """Pause or complete an automation after the run of a schedule, unless it was changed since."""
        for _ in range(ATTEMPTS):
            found = await self.find(task.automation_id)
            if found is None or found.stored.schedule != task.schedule:
                return
            reason = next((each for each in PAUSE_REASONS if outcome.error and outcome.error.code == each), None)
            if found.stored.resource.type == "once":
                ended = found.stored.changed(schedule="", status="completed")
            elif reason is not None:
                ended = found.stored.changed(schedule="", status="paused", pause_reason=reason)
                logger.warning("The automation is paused", extra={"reason": reason})
            else:
                return
            try:
                await self.store.replace(self.tenant, found, ended)
            except Conflict:
                continue
            except NotFound:
                return
            await self.schedules.delete(task.schedule)
            return

    async def drop_schedule(self, task: AutomationTask) -> None:
        """Delete a schedule that no record names, unless a request may be about to store its name."""
        if may_be_named(task.schedule):
            await self.send(task.model_copy(update={"delay_seconds": LOOK_AGAIN_SECONDS}))
            return
        logger.info("A schedule that no automation has is deleted", extra={"schedule": task.schedule})
        await self.schedules.delete(task.schedule)


def read_time(text: str) -> datetime:
    """Return the time for which Scheduler sends a task. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
