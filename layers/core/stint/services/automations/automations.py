"""Automations of a tenant: create, read, change, pause, resume, delete, and run now.

A schedule and the record that names it are in two systems, so each step may be the last one of its process:

    create, resume,   the new schedule, then the record that names it, then the old schedule is deleted
    other times
    pause             the record, then the schedule is deleted
    delete            the mark, then the schedule, then the record

So a schedule may be without a record that names it, never the reverse. It ends at its first firing: the worker deletes
what no record names (`AutomationRuns`). Names are used once, so nobody deletes what another has just made.

Whoever changes or resumes an automation decides what its runs do, so they act for this caller's key from then on, and
never with the rights of somebody else. The end user to whom it belongs stays. A request that acts for an end user sees
the automations of that user alone: those of the tenant may do more than a user may.
"""

import logging
import time
from collections.abc import Mapping

from stint.caller import create_once, find_call_depth, find_end_user, record_owners, require_principal
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, InvalidRequest, NotFound, StintError, StoreUnavailable
from stint.domain.ids import name_of
from stint.domain.openai.automations import (
    Automation,
    AutomationChanges,
    AutomationInvocation,
    ExistingSessionTarget,
    InvocationSource,
    NewAutomation,
    StoredAutomation,
)
from stint.domain.paging import Page
from stint.domain.schedules import Schedules
from stint.domain.tasks import MARK_DELAY, AutomationTask, DeletionTask
from stint.services.automations.creators import require_creator, require_end_user
from stint.services.automations.schedule_names import expression_of, new_schedule
from stint.services.automations.targets import Targets
from stint.services.deletions import Deletions
from stint.store.automation_invocations import InvocationStore
from stint.store.automations import AutomationStore, FoundAutomation

logger = logging.getLogger(__name__)

TIMES: Mapping[str, frozenset[str]] = {
    "periodic": frozenset({"expression", "timezone"}),
    "once": frozenset({"run_at"}),
}
"""The fields of each type that its schedule has."""


@dataclass(frozen=True, slots=True)
class Automations:
    """The automations of a tenant. Unknown and deleted ids, and those of another end user, raise NotFound.

    `authenticates`: callers have API keys, tokens or roles. Only a key creates, changes and resumes automations then.
    """

    tenant: str
    store: AutomationStore
    invocations: InvocationStore
    schedules: Schedules
    authenticates: bool
    targets: Targets
    deletions: Deletions

    async def create(self, new: NewAutomation) -> Automation:
        """Create an automation; for an end user if the request acts for one. A repetition with the same key returns it.

        Raises:
            Forbidden: the caller has no API key, so that its runs could not be checked, or may not use the target.
            InvalidRequest: the expression, the time zone, `run_at` or the target is refused; there are no schedules.
            NotFound: the target names an unknown agent or session.
            Conflict: the tenant has MOST_AUTOMATIONS.
            TooLarge: it is larger than MAX_AUTOMATION.
            StoreUnavailable: the schedule cannot be created.
        """
        user = find_end_user()
        key_id = require_creator(user, authenticates=self.authenticates)

        async def find(object_id: str) -> Automation:
            return await self.get(name_of("automation", object_id))

        async def create(object_id: str) -> Automation:
            fields = {name: getattr(new, name) for name in NewAutomation.model_fields}
            automation = Automation(id=name_of("automation", object_id), created_at=int(time.time()), **fields)
            automation.require_size()
            schedule = new_schedule(self.tenant, automation)
            await self.store.require_room(self.tenant)
            await self.targets.check(new.target)
            await self.schedules.create(schedule)
            stored = StoredAutomation(
                resource=automation, schedule=schedule.name, key_id=key_id, end_user=user, call_depth=find_call_depth()
            )
            try:
                await self.store.create(self.tenant, stored)
            except Conflict:
                await self.drop_schedule(schedule.name)
                raise
            return automation

        return await create_once(find, create)

    async def get(self, automation_id: str) -> Automation:
        return (await self.open(automation_id)).stored.resource

    async def open(self, automation_id: str) -> FoundAutomation:
        """Return an automation that the caller may see."""
        found = await self.store.get(self.tenant, automation_id)
        if not found.is_visible_for(find_end_user()):
            raise NotFound("Automation", automation_id)
        record_owners(found.owners.split())
        return found

    async def list(
        self, *, after: str | None, limit: int, newest_first: bool, session_id: str | None
    ) -> Page[Automation]:
        """List automations by creation; with `session_id`, those of that session. Raises NotFound for `after`."""
        user = find_end_user()

        def accepts(found: FoundAutomation) -> bool:
            target = found.stored.resource.target
            named = isinstance(target, ExistingSessionTarget) and target.session_id == session_id
            return found.is_visible_for(user) and (session_id is None or named)

        page = await self.store.list(self.tenant, after=after, limit=limit, newest_first=newest_first, accepts=accepts)
        return Page([found.stored.resource for found in page.data], page.has_more)

    async def update(self, automation_id: str, changes: AutomationChanges) -> Automation:
        """Change the given fields. The caller becomes the creator, for whom the runs act.

        Raises as `create`, and:
            InvalidRequest: a field is not one of this type, the target is of another type, or the run has begun.
            Conflict: it was changed at the same time.
        """
        found = await self.open(automation_id)
        key_id = require_creator(found.stored.end_user, authenticates=self.authenticates)
        fields = {name: getattr(changes, name) for name in changes.model_fields_set}
        check_changes(found.stored.resource, fields)
        changed = found.stored.changed(key_id=key_id, call_depth=find_call_depth(), **fields)
        changed.resource.require_size()
        if changes.target is not None or key_id != found.stored.key_id:
            await self.targets.check(changed.resource.target)
        if not fields.keys() & TIMES[changed.resource.type]:
            return (await self.store.replace(self.tenant, found, changed)).stored.resource
        if changed.resource.status != "active":
            expression_of(changed.resource)
            return (await self.store.replace(self.tenant, found, changed)).stored.resource
        return await self.reschedule(found, changed)

    async def pause(self, automation_id: str) -> Automation:
        """Pause an automation. One that is paused or completed is returned as it is. Raises Conflict as `update`."""
        found = await self.open(automation_id)
        if found.stored.resource.status != "active":
            return found.stored.resource
        paused = found.stored.changed(schedule="", status="paused")
        await self.store.replace(self.tenant, found, paused)
        await self.drop_schedule(found.stored.schedule)
        return paused.resource

    async def resume(self, automation_id: str) -> Automation:
        """Activate a paused automation, whose creator becomes the caller. An active one is returned as it is.

        Raises as `update`, and Conflict if it is completed.
        """
        found = await self.open(automation_id)
        if found.stored.resource.status == "active":
            return found.stored.resource
        if found.stored.resource.status == "completed":
            message = "The automation has had its only run. Create another one, or invoke it."
            raise Conflict(message, code="automation_completed")
        key_id = require_creator(found.stored.end_user, authenticates=self.authenticates)
        await self.targets.check(found.stored.resource.target)
        resumed = found.stored.changed(key_id=key_id, call_depth=find_call_depth(), status="active", pause_reason=None)
        return await self.reschedule(found, resumed)

    async def reschedule(self, found: FoundAutomation, changed: StoredAutomation) -> Automation:
        """Store an automation with a new schedule, and delete the old one."""
        schedule = new_schedule(self.tenant, changed.resource)
        await self.schedules.create(schedule)
        stored = changed.changed(schedule=schedule.name)
        try:
            await self.store.replace(self.tenant, found, stored)
        except (Conflict, NotFound):
            await self.drop_schedule(schedule.name)
            raise
        await self.drop_schedule(found.stored.schedule)
        return stored.resource

    async def drop_schedule(self, name: str) -> None:
        """Delete a schedule that no record names. A failure is only logged: the worker deletes it when it fires."""
        try:
            if name:
                await self.schedules.delete(name)
        except StoreUnavailable as error:
            logger.warning("A schedule was not deleted", extra={"schedule": name, "error": error.message})

    async def delete(self, automation_id: str) -> None:
        """Delete an automation with its invocations. When this returns, it begins no run any more."""
        await self.open(automation_id)
        task = DeletionTask(kind="delete_automation", tenant=self.tenant, automation_id=automation_id)

        async def mark() -> None:
            await self.store.mark_deleted(self.tenant, automation_id)

        await self.deletions.start_deletion(task, mark)

    async def invoke(self, automation_id: str) -> AutomationInvocation:
        """Run an automation now, for the caller, whatever its status is. Return the queued invocation.

        A repetition with the same idempotency key returns the same one. Raises Forbidden, StoreUnavailable.
        """
        found = await self.open(automation_id)
        end_user = found.stored.end_user or find_end_user()
        require_end_user(found.stored.end_user)

        async def find(object_id: str) -> AutomationInvocation:
            invocation = await self.get_invocation(automation_id, name_of("invocation", object_id))
            if invocation.status == "queued":  # the first attempt may have died before it sent the task
                await self.send_task(invocation, delay=0)
            return invocation

        async def create(object_id: str) -> AutomationInvocation:
            caller, now = require_principal().to_context(), int(time.time())
            invocation = AutomationInvocation(
                id=name_of("invocation", object_id), automation_id=automation_id, created_at=now
            )
            # One task before the record, in case this process dies after it, and one after the record, which hurries.
            await self.send_task(invocation, delay=MARK_DELAY)
            # With the target: what others make of it until then would have the rights of this caller.
            source = InvocationSource(created_at=now, automation=found.stored.resource, caller=caller)
            place = automation_id, invocation.id
            await self.invocations.put(self.tenant, place, object_id, source, end_user)
            try:
                await self.send_task(invocation, delay=0)
            except StintError as error:
                logger.warning("An invocation begins with a delay", extra={"error": error.message})
            return invocation

        return await create_once(find, create)

    async def send_task(self, invocation: AutomationInvocation, delay: int) -> None:
        await self.deletions.send(
            AutomationTask(
                tenant=self.tenant,
                automation_id=invocation.automation_id,
                invocation_id=invocation.id,
                delay_seconds=delay,
            )
        )

    async def get_invocation(self, automation_id: str, invocation_id: str) -> AutomationInvocation:
        await self.open(automation_id)
        return await self.invocations.get(self.tenant, automation_id, invocation_id)

    async def list_invocations(
        self, automation_id: str, *, after: str | None, limit: int, newest_first: bool
    ) -> Page[AutomationInvocation]:
        """List the invocations of the last 30 days by time. Raises NotFound for `after`."""
        await self.open(automation_id)
        return await self.invocations.list(
            self.tenant, automation_id, after=after, limit=limit, newest_first=newest_first
        )


def check_changes(automation: Automation, fields: Mapping[str, object]) -> None:
    """Refuse changes that an automation does not have. Raises InvalidRequest."""
    others = frozenset[str]().union(*TIMES.values()) - TIMES[automation.type]
    if refused := sorted(others & fields.keys()):
        message = f"An automation of the type {automation.type} has no {refused[0]}. Remove it."
        raise InvalidRequest(message, param=refused[0])
    target = fields.get("target")
    if target is not None and getattr(target, "type", None) != automation.target.type:
        message = (
            f"The target is of the type {automation.target.type}, which cannot be changed. Create another automation."
        )
        raise InvalidRequest(message, param="target.type")
    begun = automation.status == "active" and (automation.run_at or 0) <= time.time()
    if "run_at" in fields and (automation.status == "completed" or begun):
        message = "The run of the automation has begun, so that run_at cannot be changed. Create another automation."
        raise InvalidRequest(message, param="run_at", code="automation_completed")
