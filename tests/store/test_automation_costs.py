"""Units that automations cost."""

import asyncio
import time

from tests.store.conftest import Cloud

from stint.domain.ids import name_of, new_id
from stint.domain.openai.automations import (
    Automation,
    ExistingSessionTarget,
    InvocationOutcome,
    InvocationSource,
    StoredAutomation,
)


def automation(**fields: object) -> StoredAutomation:
    given = {"expression": "0 * * * *", "timezone": "UTC"} | fields
    resource = Automation(
        id=name_of("automation", new_id()),
        type="periodic",
        name="Report",
        created_at=int(time.time()),
        target=ExistingSessionTarget(session_id=new_id(), instructions="Go on."),
        **given,
    )
    return StoredAutomation(resource=resource, schedule=f"{resource.id}.0123456789ab", key_id=32 * "0")


async def test_an_automation_costs_four_write_units_and_a_change_one(cloud: Cloud, tenant: str) -> None:
    store, stored = cloud.store.automations, automation()
    await store.create(tenant, stored)
    created = dict(cloud.units)
    cloud.forget()
    found = await store.get(tenant, stored.resource.id)
    await store.replace(tenant, found, stored.changed(name="Other"))
    changed = dict(cloud.units)
    cloud.forget()
    page = await store.list(tenant, after=None, limit=20, newest_first=True, accepts=lambda _: True)

    assert created == {"GetItem": 1, "TransactWriteItems": 4}
    assert changed == {"GetItem": 1, "PutItem": 1}
    assert len(page.data) == 1
    assert cloud.units == {"Query": 1}


async def test_an_invocation_costs_two_write_units(cloud: Cloud, tenant: str) -> None:
    store, stored = cloud.store.invocations, automation()
    place = stored.resource.id, name_of("invocation", new_id())
    source = InvocationSource(created_at=int(time.time()), scheduled_at=0, automation=stored.resource)
    record = await store.begin(tenant, place, new_id(), source, 30)
    await record.put_outcome(InvocationOutcome(status="completed", session_id=new_id()))
    delivered = dict(cloud.units)
    cloud.forget()
    again = await store.begin(tenant, place, new_id(), source, 30)

    assert delivered == {"PutItem": 1, "UpdateItem": 1}
    assert again.outcome is not None
    assert not again.lease.lease_id


async def test_twelve_deletions_and_creations_at_the_same_time_keep_the_number(cloud: Cloud, tenant: str) -> None:
    store = cloud.store.automations
    made = [automation() for _ in range(6)]
    await asyncio.gather(*(store.create(tenant, each) for each in made))
    assert await store.require_room(tenant) == 6
    more = [automation() for _ in range(6)]
    await asyncio.gather(
        *(store.mark_deleted(tenant, each.resource.id) for each in made), *(store.create(tenant, each) for each in more)
    )
    await store.create(tenant, more[0])
    await store.mark_deleted(tenant, made[0].resource.id)
    assert await store.require_room(tenant) == 6
