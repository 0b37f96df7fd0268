"""Automations: create, read, change, pause, resume, delete, and whose they are."""

import json
import time

import pytest
from tests.clock import CLOCK
from tests.services.automations.automation_fixture import AT, AutomationFixture, acting, existing, in_attempt
from tests.services.recovery.test_session_deaths import KeyedAttempt

from stint.dataclasses import replace
from stint.domain.api_keys import ApiKeyWithSecret
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable, TooLarge
from stint.domain.openai.automations import MAX_AUTOMATION, MOST_AUTOMATIONS, AutomationChanges, NewAutomation
from stint.domain.tasks import AutomationTask, SentTask
from stint.store.automation_invocations import KEPT_SECONDS


async def test_a_schedule_sends_ids_only(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create(timezone="Europe/Berlin", expression="30 8 * * 1-5")
    [schedule] = process.schedules.active.values()
    assert (schedule.expression, schedule.timezone) == ("cron(30 8 ? * 2-6 *)", "Europe/Berlin")
    assert len(schedule.name) <= 64
    assert json.loads(schedule.payload) == {
        "kind": "automation",
        "tenant": process.tenant,
        "automation_id": automation.id,
        "schedule": schedule.name,
        "scheduled_at": "<aws.scheduler.scheduled-time>",
    }


async def test_a_single_run_is_a_schedule_at_a_time(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        await process.create(type="once", run_at=1893456000)
        with pytest.raises(InvalidRequest) as past:
            await process.create(type="once", run_at=int(time.time()))
    [schedule] = process.schedules.active.values()
    assert (schedule.expression, schedule.timezone) == ("at(2030-01-01T00:00:00)", "UTC")
    assert (past.value.param, past.value.code) == ("run_at", "run_at_in_past")


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"expression": "61 * * * *"}, "expression"), ({"expression": "@daily"}, "expression")],
)
async def test_what_the_scheduler_cannot_express_creates_nothing(
    process: AutomationFixture, key: ApiKeyWithSecret, fields: dict[str, str], param: str
) -> None:
    with acting(key), pytest.raises(InvalidRequest) as refused:
        await process.create(**fields)
    assert refused.value.param == param
    assert process.schedules.active == {}
    assert [item for item in process.cloud.items(process.tenant) if "#automation" in item["pk"]["S"]] == []


async def test_a_target_is_checked_before_anything_is_made(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    unknown = "01a2280f-0000-7000-8000-000000000000"
    weak = await process.create_key(models=["other/*"])
    with acting(key):
        targets = [existing(unknown), await process.target(agent=None, agent_id=unknown)]
        for target in targets:
            with pytest.raises(NotFound):
                await process.create(target=target)
        with pytest.raises(InvalidRequest):
            await process.create(target=await process.target(vault_ids=["vault_" + 32 * "0"]))
        with pytest.raises(TooLarge):
            await process.create(target=await process.target("x" * MAX_AUTOMATION))
    with acting(weak), pytest.raises(Forbidden):
        await process.create()
    assert process.schedules.active == {}


async def test_an_update_changes_the_given_fields_and_the_schedule(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    with acting(key):
        automation = await process.create(metadata={"a": "b"})
        [first] = process.schedules.active
        renamed = await process.automations.update(automation.id, AutomationChanges(name="Other", metadata={}))
        assert [*process.schedules.active] == [first]
        moved = await process.automations.update(automation.id, AutomationChanges(timezone="Asia/Tokyo"))
        assert await process.automations.get(automation.id) == moved
    [second] = process.schedules.active.values()
    assert (renamed.name, renamed.metadata, renamed.expression) == ("Other", {}, "0 * * * *")
    assert (second.timezone, second.name == first, moved.name) == ("Asia/Tokyo", False, "Other")


async def test_an_update_refuses_what_the_type_does_not_have(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        await process.sessions.open()
        periodic, once = await process.create(), await process.create(type="once")
        for automation, changes, param in (
            (periodic, {"run_at": int(time.time()) + 60}, "run_at"),
            (once, {"expression": "* * * * *"}, "expression"),
            (once, {"timezone": "UTC"}, "timezone"),
            (once, {"run_at": 5}, "run_at"),
            (periodic, {"target": existing(process.sessions.session_id)}, "target.type"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                await process.automations.update(automation.id, AutomationChanges(**changes))
            assert refused.value.param == param


async def test_a_paused_automation_has_no_schedule_and_does_not_run(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    with acting(key):
        automation = await process.create()
        tasks = process.fire(AT)
        paused = await process.automations.pause(automation.id)
        assert await process.automations.pause(automation.id) == paused
        changed = await process.automations.update(automation.id, AutomationChanges(expression="5 * * * *"))
    assert (paused.status, changed.status, process.schedules.active) == ("paused", "paused", {})
    await process.run(*tasks)
    assert await process.list_sessions() == []
    with acting(key):
        resumed = await process.automations.resume(automation.id)
        assert await process.automations.resume(automation.id) == resumed
    [schedule] = process.schedules.active.values()
    assert (resumed.status, schedule.expression) == ("active", "cron(5 * * * ? *)")


async def test_two_changes_at_the_same_time_leave_one_schedule(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    import asyncio

    with acting(key):
        automation = await process.create()
        moves = [
            process.automations.update(automation.id, AutomationChanges(expression=f"{minute} * * * *"))
            for minute in range(5)
        ]
        results = await asyncio.gather(*moves, return_exceptions=True)
    refused = [each for each in results if isinstance(each, Conflict)]
    assert {each.code for each in refused} <= {"automation_changed"}
    found = await process.cloud.store.automations.get(process.tenant, automation.id)
    assert [*process.schedules.active] == [found.stored.schedule]


async def test_a_deleted_automation_leaves_nothing(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create()
        tasks = process.fire(AT)
        await process.run(*tasks)
        invoked = await process.automations.invoke(automation.id)
        await process.automations.delete(automation.id)
        for lost in (
            process.automations.get(automation.id),
            process.automations.invoke(automation.id),
            process.automations.get_invocation(automation.id, invoked.id),
            process.automations.pause(automation.id),
            process.automations.delete(automation.id),
        ):
            with pytest.raises(NotFound):
                await lost
    await process.run(*process.schedules.fire(AT), *tasks)
    await process.work()
    records = process.cloud.items(process.tenant)
    left = [item for item in records if "#automation" in item["pk"]["S"]]
    assert [(item["sk"]["S"], item["automation_count"]["N"]) for item in left] == [("count", "0")]
    assert len(await process.list_sessions()) == 1


async def test_a_run_during_a_deletion_leaves_no_invocation(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create()
    [task] = process.fire(AT)
    found = await process.runs.find(automation.id)
    with acting(key):
        await process.automations.delete(automation.id)
    await process.runs.run_scheduled(task, found, time.monotonic() + 30, last=False)
    records = process.cloud.items(process.tenant)
    assert [item["sk"]["S"] for item in records if "#automation" in item["pk"]["S"]] == ["count"]
    assert await process.list_sessions() == []


async def test_a_tenant_has_a_limit_of_automations_that_a_deletion_frees(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    with acting(key):
        body = NewAutomation(**await process.body())
        made = [await process.automations.create(body) for _ in range(MOST_AUTOMATIONS)]
        with pytest.raises(Conflict) as full:
            await process.automations.create(body)
        assert len(process.schedules.active) == MOST_AUTOMATIONS
        await process.automations.delete(made[0].id)
        await process.automations.create(body)
        first = await process.automations.list(after=None, limit=60, newest_first=True, session_id=None)
        second = await process.automations.list(after=first.data[-1].id, limit=60, newest_first=True, session_id=None)
    assert full.value.code == "too_many_automations"
    assert (len(first.data), first.has_more, len(second.data), second.has_more) == (60, True, 40, False)
    assert sorted((each.id for each in first.data), reverse=True) == [each.id for each in first.data]


async def test_a_page_of_large_automations_fits_into_an_answer(
    process: AutomationFixture, key: ApiKeyWithSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stint.store.documents.MAX_BYTES", 150_000)
    with acting(key):
        for _ in range(4):
            automation = await process.create(target=await process.target("x" * (MAX_AUTOMATION - 2_000)))
        page = await process.automations.list(after=None, limit=4, newest_first=True, session_id=None)
        for hour in range(4):
            await process.run(
                *(t for t in process.fire(f"2026-11-29T1{hour}:00:00Z") if t.automation_id == automation.id)
            )
        runs = await process.automations.list_invocations(automation.id, after=None, limit=4, newest_first=True)
    assert (len(page.data), page.has_more, len(runs.data), runs.has_more) == (2, True, 2, True)


async def test_invocations_are_listed_by_time_and_expire(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create()
    for hour in (13, 11, 12):
        await process.run_at(f"2026-11-29T{hour}:00:00Z")
    with acting(key):
        newest = await process.automations.list_invocations(automation.id, after=None, limit=2, newest_first=True)
        rest = await process.automations.list_invocations(
            automation.id, after=newest.data[-1].id, limit=2, newest_first=True
        )
        hours = [time.gmtime(each.scheduled_at).tm_hour for each in (*newest.data, *rest.data)]
        assert (hours, newest.has_more, rest.has_more) == ([13, 12, 11], True, False)
        CLOCK.move(KEPT_SECONDS + 1)
        assert await process.list_invocations(automation) == []
        with pytest.raises(NotFound):
            await process.automations.get_invocation(automation.id, newest.data[0].id)


async def test_a_request_with_a_key_creates_and_invokes_once(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    creation, invocation = KeyedAttempt(), KeyedAttempt()
    with acting(key):
        body = NewAutomation(**await process.body())
        with in_attempt(creation.next(repeated=False)):
            automation = await process.automations.create(body)
        with in_attempt(creation.next()):
            assert await process.automations.create(body) == automation
        with in_attempt(invocation.next(repeated=False)):
            invoked = await process.automations.invoke(automation.id)
        with in_attempt(invocation.next()):
            assert await process.automations.invoke(automation.id) == invoked
    await process.work()
    assert len(await process.list_sessions()) == 1


async def test_an_invocation_whose_second_task_is_refused_runs_with_the_first(
    process: AutomationFixture, key: ApiKeyWithSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[AutomationTask] = []

    async def send(task: SentTask) -> None:
        assert isinstance(task, AutomationTask)
        if sent:
            raise StoreUnavailable("SQS does not answer.")
        sent.append(task)

    with acting(key):
        automation = await process.create()
        process.automations = replace(process.automations, deletions=replace(process.deletions, send=send))
        invoked = await process.automations.invoke(automation.id)
    assert invoked.status == "queued"
    await process.run(*sent)
    assert len(await process.list_sessions()) == 1


async def test_an_automation_of_an_end_user_is_theirs_alone(process: AutomationFixture) -> None:
    key = await process.create_key("use", "users:act")
    with acting(key, "ann"):
        own = await process.create()
    with acting(key):
        common = await process.create()
    with acting(key, "bob"):
        for lost in (
            process.automations.get(own.id),
            process.automations.get(common.id),
            process.automations.update(common.id, AutomationChanges(name="Mine")),
            process.automations.resume(own.id),
            process.automations.pause(own.id),
            process.automations.delete(common.id),
            process.automations.invoke(own.id),
            process.automations.list_invocations(own.id, after=None, limit=1, newest_first=True),
        ):
            with pytest.raises(NotFound):
                await lost
        assert (await process.automations.list(after=None, limit=9, newest_first=True, session_id=None)).data == []
    with acting(key, "ann"):
        page = await process.automations.list(after=None, limit=9, newest_first=True, session_id=None)
        assert [each.id for each in page.data] == [own.id]
    with acting(key):
        page = await process.automations.list(after=None, limit=9, newest_first=True, session_id=None)
        assert {each.id for each in page.data} == {own.id, common.id}


async def test_the_sessions_of_an_end_users_automation_are_that_users(process: AutomationFixture) -> None:
    key, plain = await process.create_key("use", "users:act"), await process.create_key("use")
    with acting(key, "ann"):
        automation = await process.create()
    with acting(plain):  # who may not act for the user makes no runs for them
        for refused in (
            process.automations.update(automation.id, AutomationChanges(name="Mine")),
            process.automations.invoke(automation.id),
        ):
            with pytest.raises(Forbidden):
                await refused
    await process.run_at()
    with acting(key):
        await process.automations.update(automation.id, AutomationChanges(name="Other"))
        await process.automations.invoke(automation.id)
    await process.run_at("2026-11-29T16:00:00Z")
    await process.work()

    with acting(await process.create_key("admin")):
        owned = [each.kind for each in (await process.end_users.list("ann", None, 100)).data]
        assert sorted(owned) == ["automation", "session", "session", "session"]
        receipt = await process.end_users.erase("ann")
    assert (receipt.deleted["automation"], receipt.complete) == (1, True)
    assert process.schedules.active == {}
    assert [item for item in process.cloud.items(process.tenant) if automation.id in str(item)] == []
    assert await process.list_sessions() == []


async def test_a_key_that_may_not_act_for_the_end_user_any_more_pauses_the_automation(
    process: AutomationFixture,
) -> None:
    key = await process.create_key("use")
    with acting(key, "ann"):  # as if the key had had the scope
        automation = await process.create()
    await process.run_at()
    with acting(key, "ann"):
        assert (await process.automations.get(automation.id)).pause_reason == "creator_key_insufficient_scope"
    assert await process.list_sessions() == []


async def test_an_automation_does_not_reach_a_session_of_another_end_user(process: AutomationFixture) -> None:
    key = await process.create_key("use", "users:act")
    with acting(key, "bob"):
        await process.sessions.open()
        await process.sessions.services.agent_sessions.reader.open_input(process.sessions.session_id)
        await (await process.sessions.services.reader.open_input(process.sessions.session_id)).check(())
    with acting(key, "ann"), pytest.raises(Forbidden):
        await process.create(target=existing(process.sessions.session_id))
