"""The automation that the files in `events/` refer to, and the removal of what they make."""

import contextlib

from infra.local.sample_ids import AGENT, API_KEY, AUTOMATION, INVOCATION, NEW_AUTOMATION

from stint.domain.errors import NotFound
from stint.domain.ids import TENANT
from stint.domain.messages import UserMessage
from stint.domain.openai.automations import Automation, InvocationSource, NewSessionTarget, StoredAutomation
from stint.openai_agents.automation_targets import SessionPlan
from stint.store.automations import FoundAutomation
from stint.store.store import Store

CREATED_AT = 1756472000


async def store_automation(store: Store) -> None:
    """Store an automation of the sample key, with an invocation. Its schedule does not exist."""
    plan = SessionPlan(agent_id=AGENT, messages=[UserMessage(content="What is the weather in Oslo?")])
    automation = Automation(
        id=AUTOMATION,
        type="periodic",
        name="sample",
        created_at=CREATED_AT,
        expression="0 9 * * *",
        timezone="Europe/Oslo",
        target=NewSessionTarget(request=plan.model_dump(mode="json")),
    )
    stored = StoredAutomation(resource=automation, schedule=f"{AUTOMATION}.sample", key_id=API_KEY)
    await store.automations.create(TENANT, stored)
    source = InvocationSource(created_at=CREATED_AT, scheduled_at=CREATED_AT, automation=automation)
    await store.invocations.put(TENANT, (AUTOMATION, INVOCATION), AGENT, source, None)


async def remove_automations(store: Store) -> None:
    """Delete the automation, and those that events have created. Their schedules stay until they fire."""

    async def keep_schedule(_: str) -> None:
        pass

    found = await store.automations.list(TENANT, after=None, limit=100, newest_first=True, accepts=is_sample)
    for identifier in {AUTOMATION, *(each.stored.resource.id for each in found.data)}:
        with contextlib.suppress(NotFound):
            await store.automations.mark_deleted(TENANT, identifier)
            await store.automations.delete(TENANT, identifier, float("inf"), keep_schedule)


def is_sample(found: FoundAutomation) -> bool:
    return found.stored.resource.name == NEW_AUTOMATION
