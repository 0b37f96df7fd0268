"""Automations of OpenAI's Agents API: its requests and objects, for those of the services.

The services know neither this API's agents nor its input. So a target is converted once, when it is stored
(`SessionTargets`), and back for each object; an invocation shows the automation as it was when it was asked for.
"""

from typing import Any

from stint.dataclasses import dataclass
from stint.domain.openai.automations import Automation, AutomationChanges, AutomationInvocation, NewAutomation
from stint.openai_agents.automation_targets import SessionTargets, from_target
from stint.openai_agents.lists import ListWindow
from stint.openai_agents.schemas.automations import (
    AutomationInvocationList,
    AutomationInvocationObject,
    AutomationList,
    AutomationObject,
    AutomationUpdateParams,
    ManualSource,
    OneTimeAutomationObject,
    OneTimeAutomationParams,
    PeriodicAutomationObject,
    PeriodicAutomationParams,
    ScheduledSource,
)
from stint.services.automations.automations import Automations


@dataclass(frozen=True, slots=True)
class AgentAutomations:
    """The automations of a tenant. Raises as `Automations`."""

    automations: Automations
    targets: SessionTargets

    async def create(self, params: PeriodicAutomationParams | OneTimeAutomationParams) -> AutomationObject:
        fields = {name: getattr(params, name) for name in params.model_fields_set - {"target"}}
        target = await self.targets.read(params.target)
        return from_automation(await self.automations.create(NewAutomation(**fields, target=target)))

    async def get(self, automation_id: str) -> AutomationObject:
        return from_automation(await self.automations.get(automation_id))

    async def list(self, window: ListWindow, session_id: str | None) -> AutomationList:
        page = await self.automations.list(
            after=window.after, limit=window.limit, newest_first=window.newest_first, session_id=session_id
        )
        return AutomationList.of([from_automation(each) for each in page.data], page.has_more, page.position)

    async def update(self, automation_id: str, params: AutomationUpdateParams) -> AutomationObject:
        """Change the fields that are given."""
        given = {name: value for name in params.model_fields_set if (value := getattr(params, name)) is not None}
        if params.target is not None:
            given["target"] = await self.targets.read(params.target)
        return from_automation(await self.automations.update(automation_id, AutomationChanges(**given)))

    async def pause(self, automation_id: str) -> AutomationObject:
        return from_automation(await self.automations.pause(automation_id))

    async def resume(self, automation_id: str) -> AutomationObject:
        return from_automation(await self.automations.resume(automation_id))

    async def delete(self, automation_id: str) -> None:
        await self.automations.delete(automation_id)

    async def invoke(self, automation_id: str) -> AutomationInvocationObject:
        """Run an automation now. Raises Stopped for a caller or a tenant that was stopped."""
        await self.targets.refuse_stopped_caller()
        return from_invocation(await self.automations.invoke(automation_id))

    async def get_invocation(self, automation_id: str, invocation_id: str) -> AutomationInvocationObject:
        return from_invocation(await self.automations.get_invocation(automation_id, invocation_id))

    async def list_invocations(self, automation_id: str, window: ListWindow) -> AutomationInvocationList:
        page = await self.automations.list_invocations(
            automation_id, after=window.after, limit=window.limit, newest_first=window.newest_first
        )
        return AutomationInvocationList.of([from_invocation(each) for each in page.data], page.has_more, page.position)


def from_automation(automation: Automation) -> AutomationObject:
    """Convert an automation."""
    shown: dict[str, Any] = {
        "id": automation.id,
        "created_at": automation.created_at,
        "name": automation.name,
        "target": from_target(automation.target),
        "metadata": automation.metadata,
        "status": automation.status,
        "pause_reason": automation.pause_reason,
    }
    if automation.type == "periodic":
        return PeriodicAutomationObject(**shown, expression=automation.expression, timezone=automation.timezone)
    return OneTimeAutomationObject(**shown, run_at=automation.run_at)


def from_invocation(invocation: AutomationInvocation) -> AutomationInvocationObject:
    """Convert an invocation, with what its automation was at that time."""
    automation = invocation.automation
    return AutomationInvocationObject(
        id=invocation.id,
        automation_id=invocation.automation_id,
        created_at=invocation.created_at,
        scheduled_at=invocation.scheduled_at,
        session_id=invocation.session_id,
        source=ManualSource() if automation is None else ScheduledSource(automation=from_automation(automation)),
        status=invocation.status,
        skip_reason=invocation.skip_reason,
        error=invocation.error,
    )
