"""Units of what requests and runs do with automations, as docs/costs.md has them."""

from collections.abc import Awaitable

from tests.services.automations.automation_fixture import AutomationFixture, acting, existing

from stint.domain.api_keys import ApiKeyWithSecret
from stint.domain.openai.automations import AutomationChanges

READS = ("GetItem", "Query")


async def units_of(process: AutomationFixture, work: Awaitable[object]) -> tuple[float, float]:
    """Return the write units and the read units of some work."""
    process.cloud.forget()
    await work
    units = process.cloud.units
    return sum(units.values()) - sum(units[name] for name in READS), sum(units[name] for name in READS)


async def test_requests_cost_what_the_documentation_says(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    automations, target = process.automations, await process.target()
    with acting(key):
        await process.create()
        [automation] = (await automations.list(after=None, limit=1, newest_first=True, session_id=None)).data
        created = await units_of(process, process.create(target=target))
        changed = await units_of(process, automations.update(automation.id, AutomationChanges(expression="1 * * * *")))
        paused = await units_of(process, automations.pause(automation.id))
        resumed = await units_of(process, automations.resume(automation.id))
        invoked = await units_of(process, automations.invoke(automation.id))
        await automations.invoke(automation.id)
        deleted = await units_of(process, automations.delete(automation.id))

    assert (created, changed, paused, resumed) == ((4, 2.5), (1, 1), (1, 1), (1, 1.5))
    assert (invoked, deleted) == ((1, 1), (7, 5))


async def test_runs_cost_what_the_documentation_says(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        await process.create()
        [begins] = process.fire()
        await process.sessions.open()
        process.schedules.active.clear()
        await process.create(target=existing(process.sessions.session_id))
        [sends] = process.fire()

    assert await units_of(process, process.run(begins)) == (15, 11.5)
    assert await units_of(process, process.run(begins)) == (0, 2)
    assert await units_of(process, process.run(sends)) == (5, 13.5)
