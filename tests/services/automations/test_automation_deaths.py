"""Processes of automations that die at each call of the table: nothing runs twice, and no schedule stays for ever."""

from functools import partial

import pytest
from infra.local.engine import Engine
from tests.clock import CLOCK
from tests.services.automations.automation_fixture import (
    AT,
    AutomationFixture,
    BreakableSchedules,
    acting,
    existing,
    in_attempt,
)
from tests.services.deaths import Runner, counting, die_at
from tests.services.recovery.test_session_deaths import CALLS, KeyedAttempt, points_of
from tests.store.conftest import Cloud

from stint.domain.api_keys import ApiKeyWithSecret
from stint.domain.errors import NotFound, StintError, StoreUnavailable
from stint.domain.openai.automations import Automation, AutomationChanges, NewAutomation

OTHER_FORMS = "2026-11-29T15:00:00", "2026-11-29T15:00:00.000Z", "2026-11-29T16:00:00+01:00"
"""Other forms of AT."""

OLD = 901.0
"""Seconds after which no request may be about to name a schedule."""


class AutomationStage:
    """A tenant with an automation, whose processes die."""

    def __init__(self, cloud: Cloud, tenant: str, engine: Engine) -> None:
        self.cloud = cloud
        self.process = AutomationFixture(cloud, tenant, engine.outputs["KeysTableName"])

    async def open(self, target: str = "new", **fields: object) -> "AutomationStage":
        """Start with another automation and without schedules."""
        self.process.schedules.active.clear()
        self.key: ApiKeyWithSecret = await self.process.create_key()
        with acting(self.key):
            if target == "existing":
                await self.process.sessions.open()
                fields["target"] = existing(self.process.sessions.session_id)
            self.automation: Automation = await self.process.create(**fields)
        return self

    async def die(self, operation: str, number: int, run: Runner) -> None:
        with acting(self.key):
            await die_at(self.cloud, operation, number, run)

    async def fire_until_settled(self) -> None:
        """Let all schedules fire when they are old, and handle the tasks, as a stack does sooner or later."""
        for _ in range(3):
            CLOCK.move(OLD)
            await self.process.run(*self.process.fire("2026-12-01T00:00:00Z"))
            await self.process.work()

    async def named(self) -> set[str]:
        """Return the schedules that the automation's record names."""
        try:
            found = await self.cloud.store.automations.get(self.process.tenant, self.automation.id)
        except NotFound:
            return set()
        return {found.stored.schedule} - {""}


@pytest.fixture
def stage(own_cloud: Cloud, tenant: str, engine: Engine) -> AutomationStage:
    return AutomationStage(own_cloud, tenant, engine)


@pytest.mark.parametrize("target", ["new", "existing"])
async def test_a_run_that_dies_at_any_call_and_is_delivered_again_happens_once(
    stage: AutomationStage, target: str
) -> None:
    process = (await stage.open(target)).process
    await process.sessions.fixture.turns.turns.planner.prepare()
    with counting(stage.cloud) as calls:
        await process.run_at()
    points = points_of(calls, CALLS)
    assert len(points) >= 10

    for operation, number in points:
        await stage.open(target)
        process.queue.waiting.clear()
        before = {*await process.list_sessions()}
        [task] = process.fire(AT)
        await die_at(stage.cloud, operation, number, partial(process.run, task))
        CLOCK.move(41)  # until the lease of the dead process has lapsed
        await process.other_process().run(task)
        await process.run(task)

        with acting(stage.key):
            invocations = await process.list_invocations(stage.automation)
        assert [each.status for each in invocations] == ["completed"], (operation, number)
        assert [each.error for each in invocations] == [None]
        created = {*await process.list_sessions()} - before
        assert len(created) == (target == "new"), (operation, number)
        if created:
            process.sessions.session_id = invocations[0].session_id or ""
            process.sessions.agent_id = await process.sessions.services.reader.find_agent(process.sessions.session_id)
            assert created == {process.sessions.session_id}, (operation, number)
        CLOCK.move(41)
        await process.sessions.work()
        await process.sessions.work()
        assert len(await process.sessions.inputs()) == 1, (operation, number)


async def test_a_single_run_that_dies_at_any_call_completes_the_automation(stage: AutomationStage) -> None:
    process = (await stage.open(type="once")).process
    with counting(stage.cloud) as calls:
        await process.run_at()

    for operation, number in points_of(calls, CALLS):
        await stage.open(type="once")
        [task] = process.fire(AT)
        await die_at(stage.cloud, operation, number, partial(process.run, task))
        CLOCK.move(41)
        await process.other_process().run(task)

        with acting(stage.key):
            assert (await process.automations.get(stage.automation.id)).status == "completed", (operation, number)
            assert len(await process.list_invocations(stage.automation)) == 1


async def test_a_creation_that_dies_at_any_call_leaves_one_automation_and_its_schedule(
    stage: AutomationStage,
) -> None:
    process = (await stage.open()).process
    body = NewAutomation(**await process.body())
    create = partial(process.automations.create, body)
    with counting(stage.cloud) as calls, acting(stage.key):
        await create()
    points = points_of(calls, CALLS)
    assert len(points) >= 3

    for operation, number in points:
        await stage.open()
        with acting(stage.key):
            await process.automations.delete(stage.automation.id)
        key = KeyedAttempt()
        with in_attempt(key.next(repeated=False)):
            await stage.die(operation, number, create)
        with acting(stage.key), in_attempt(key.next()):
            stage.automation = await process.other_process().automations.create(body)
        await stage.fire_until_settled()

        assert {*process.schedules.active} == await stage.named(), (operation, number)
        with acting(stage.key):
            await process.automations.delete(stage.automation.id)
        assert process.schedules.active == {}


@pytest.mark.parametrize("operation", ["rename", "move", "pause", "resume", "delete"])
async def test_a_change_that_dies_at_any_call_leaves_only_the_schedule_that_is_named(
    stage: AutomationStage, operation: str
) -> None:
    process = stage.process

    async def change() -> None:
        identifier, automations = stage.automation.id, process.automations
        if operation == "rename":
            await automations.update(identifier, AutomationChanges(name="Other"))
        elif operation == "move":
            await automations.update(identifier, AutomationChanges(expression="5 * * * *"))
        elif operation == "pause":
            await automations.pause(identifier)
        elif operation == "resume":
            await automations.resume(identifier)
        else:
            await automations.delete(identifier)

    async def begin() -> None:
        await stage.open()
        if operation == "resume":
            with acting(stage.key):
                await process.automations.pause(stage.automation.id)

    await begin()
    with counting(stage.cloud) as calls, acting(stage.key):
        await change()
    for call, number in points_of(calls, CALLS):
        await begin()
        await stage.die(call, number, change)
        with acting(stage.key):
            try:
                status = (await process.automations.get(stage.automation.id)).status
            except NotFound:
                status = None
        for task in process.queue.early_deletions:
            await process.deletions.continue_deletion(task, 20) if status is None else None
        process.queue.early_deletions.clear()
        await stage.fire_until_settled()

        assert {*process.schedules.active} == await stage.named(), (call, number)
        assert (status == "active") == bool(process.schedules.active), (call, number)


@pytest.mark.parametrize("step", ["before create", "after create", "before delete", "after delete"])
@pytest.mark.parametrize("operation", ["create", "move", "pause", "resume", "delete"])
async def test_a_scheduler_that_fails_leaves_only_the_schedule_that_is_named(
    stage: AutomationStage, operation: str, step: str
) -> None:
    process = (await stage.open()).process
    schedules: BreakableSchedules = process.schedules
    with acting(stage.key):
        if operation == "resume":
            await process.automations.pause(stage.automation.id)
        schedules.fails = step
        try:
            if operation == "create":
                await process.create()
            elif operation == "move":
                await process.automations.update(stage.automation.id, AutomationChanges(expression="5 * * * *"))
            elif operation == "delete":
                await process.automations.delete(stage.automation.id)
            else:
                await getattr(process.automations, operation)(stage.automation.id)
        except StoreUnavailable:
            assert step.endswith("create")
        schedules.fails = ""
        page = await process.automations.list(after=None, limit=100, newest_first=True, session_id=None)
    for task in process.queue.early_deletions:
        await process.deletions.continue_deletion(task, 20)
    await stage.fire_until_settled()

    named = [(await process.cloud.store.automations.get(process.tenant, each.id)).stored.schedule for each in page.data]
    assert {*schedules.active} == {*named} - {""}


async def test_an_invocation_that_dies_at_any_call_and_is_repeated_runs_once(stage: AutomationStage) -> None:
    process = (await stage.open()).process
    with counting(stage.cloud) as calls, acting(stage.key):
        await process.automations.invoke(stage.automation.id)
    for operation, number in points_of(calls, CALLS):
        await stage.open()
        process.queue.automations.clear()
        before, key = {*await process.list_sessions()}, KeyedAttempt()
        with in_attempt(key.next(repeated=False)):
            await stage.die(operation, number, partial(process.automations.invoke, stage.automation.id))
        with acting(stage.key), in_attempt(key.next()):
            invoked = await process.other_process().automations.invoke(stage.automation.id)
        await process.work()
        await process.work()

        with acting(stage.key):
            assert [each.id for each in await process.list_invocations(stage.automation)] == [invoked.id]
        assert len({*await process.list_sessions()} - before) == 1, (operation, number)


async def test_a_schedule_that_no_record_names_yet_is_not_deleted(stage: AutomationStage) -> None:
    process = (await stage.open()).process
    [task] = process.fire(AT)
    unnamed = task.model_copy(update={"schedule": task.schedule[:-4] + "ffff"})
    await process.run(unnamed)
    [again] = process.queue.automations
    assert (again.schedule, again.delay_seconds, again.scheduled_at) == (unnamed.schedule, 60, AT)
    assert await process.list_sessions() == []
    CLOCK.move(OLD)
    await process.work()
    assert process.queue.automations == []
    assert len(process.schedules.active) == 1


async def test_a_schedule_of_the_future_is_not_looked_for_again_and_again(stage: AutomationStage) -> None:
    process = (await stage.open()).process
    [task] = process.fire(AT)
    await process.run(task.model_copy(update={"schedule": "automation_x.ffffffff0000"}))
    assert process.queue.automations == []


async def test_a_time_runs_once_however_it_is_written(stage: AutomationStage) -> None:
    process = (await stage.open()).process
    [task] = process.fire(AT)
    await process.run(task, *(task.model_copy(update={"scheduled_at": each}) for each in OTHER_FORMS))
    assert len(await process.list_sessions()) == 1


async def test_two_deliveries_at_the_same_time_begin_one_session(stage: AutomationStage) -> None:
    import asyncio

    process = (await stage.open()).process
    [task] = process.fire(AT)
    results = await asyncio.gather(process.run(task), process.other_process().run(task), return_exceptions=True)
    await process.run(task)
    assert all(each is None or isinstance(each, StintError) for each in results)
    assert len(await process.list_sessions()) == 1
