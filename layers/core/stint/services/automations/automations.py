# ruff: noqa: ARG002
"""Automations of a tenant: create, read, change, pause, resume, delete, and run now."""

from stint.dataclasses import dataclass
from stint.domain.errors import NotSupported
from stint.domain.openai.automations import Automation, AutomationChanges, AutomationInvocation, NewAutomation
from stint.domain.paging import Page


@dataclass(frozen=True, slots=True)
class Automations:
    """The automations of a tenant. Unknown and deleted ids, and those of another end user, raise NotFound."""

    tenant: str

    async def create(self, new: NewAutomation) -> Automation:
        """Create an automation; for an end user if the request acts for one. A repetition with the same key returns it.

        Raises:
            Forbidden: the caller has no API key, so that its runs could not be checked.
            InvalidRequest: the expression, the time zone, `run_at` or the target is refused.
            NotFound: the target names an unknown agent or session.
            Conflict: the tenant has MOST_AUTOMATIONS.
            TooLarge: it is larger than MAX_AUTOMATION.
            NotSupported: the stack has no schedules.
        """
        raise NotSupported("Automations are not supported.")

    async def get(self, automation_id: str) -> Automation:
        raise NotSupported("Automations are not supported.")

    async def list(
        self, *, after: str | None, limit: int, newest_first: bool, session_id: str | None
    ) -> Page[Automation]:
        """List automations by creation; with `session_id`, those of that session. Raises NotFound for `after`."""
        raise NotSupported("Automations are not supported.")

    async def update(self, automation_id: str, changes: AutomationChanges) -> Automation:
        """Change the given fields. The caller becomes the creator, for whom the runs act.

        Raises as `create`, and:
            InvalidRequest: a field is not one of this type, the target is of another type, or the run has begun.
            Conflict: it was changed at the same time.
        """
        raise NotSupported("Automations are not supported.")

    async def pause(self, automation_id: str) -> Automation:
        """Pause an automation. One that is paused or completed is returned as it is. Raises Conflict as `update`."""
        raise NotSupported("Automations are not supported.")

    async def resume(self, automation_id: str) -> Automation:
        """Activate a paused automation, whose creator becomes the caller. Raises as `update`."""
        raise NotSupported("Automations are not supported.")

    async def delete(self, automation_id: str) -> None:
        """Delete an automation with its invocations. When this returns, it begins no run any more."""
        raise NotSupported("Automations are not supported.")

    async def invoke(self, automation_id: str) -> AutomationInvocation:
        """Run an automation now, for the caller, whatever its status is. Return the queued invocation.

        A repetition with the same idempotency key returns the same one. Raises Forbidden, StoreUnavailable.
        """
        raise NotSupported("Automations are not supported.")

    async def get_invocation(self, automation_id: str, invocation_id: str) -> AutomationInvocation:
        raise NotSupported("Automations are not supported.")

    async def list_invocations(
        self, automation_id: str, *, after: str | None, limit: int, newest_first: bool
    ) -> Page[AutomationInvocation]:
        """List the invocations of the last 30 days by time. Raises NotFound for `after`."""
        raise NotSupported("Automations are not supported.")
