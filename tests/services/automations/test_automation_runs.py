"""Runs of automations: what a session gets, for whom, and what becomes of the automation."""

import time

import pytest
from tests.clock import CLOCK
from tests.services.automations.automation_fixture import AT, TOKEN, AutomationFixture, acting, existing
from tests.services.session_process import message

from stint.dataclasses import replace
from stint.domain.api_keys import ApiKeyWithSecret
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.openai.automations import OVERDUE_SECONDS, AutomationChanges
from stint.domain.stops import WHOLE_TENANT, stop_name

LATER = "2026-11-29T16:00:00Z"


async def test_a_schedule_begins_one_session_for_each_time(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create()

    await process.run_at(AT)
    await process.run(*process.fire(AT))  # Scheduler and SQS deliver at least once
    await process.run_at(LATER)

    with acting(key):
        second, first = await process.list_invocations(automation)
        assert (first.status, first.scheduled_at, first.automation) == ("completed", 1795964400, automation)
        assert {first.session_id, second.session_id} == {*await process.list_sessions()}
        assert await process.automations.get_invocation(automation.id, first.id) == first
    assert len({first.session_id, second.session_id}) == 2


async def test_the_message_of_a_run_has_the_key_as_its_sender(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    with acting(key):
        await process.create(target=await process.target("What is new?"))
    await process.run_at()
    process.sessions.session_id = (await process.list_sessions())[0]
    process.sessions.agent_id = await process.sessions.services.reader.find_agent(process.sessions.session_id)

    line = process.cloud.store.session_line(*process.sessions.ids)
    [place] = await line.read()
    state = await line.get(place.message_id)
    assert state is not None
    assert state.message.creator is not None
    assert (state.message.creator["key_id"], state.message.end_user) == (key.id, None)
    await process.sessions.work()
    assert await process.sessions.inputs() == ["What is new?"]


async def test_an_existing_session_gets_the_instructions_unless_the_ones_before_wait(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    with acting(key):
        await process.sessions.open()
        await process.sessions.post(message("one"))
        automation = await process.create(target=existing(process.sessions.session_id))
        assert (
            await process.automations.list(
                after=None, limit=9, newest_first=True, session_id=process.sessions.session_id
            )
        ).data == [automation]

    await process.run_at(AT)
    await process.run(*process.fire(AT))
    await process.run_at(LATER)
    with acting(key):
        skipped, completed = await process.list_invocations(automation)
    assert (skipped.status, skipped.skip_reason) == ("skipped", "pending_delivery")
    assert (completed.status, completed.session_id) == ("completed", process.sessions.session_id)

    await process.sessions.work()
    await process.run_at("2026-11-29T17:00:00Z")
    await process.sessions.work()
    assert await process.sessions.inputs() == ["one", "Go on.", "Go on."]


async def test_an_automation_that_runs_once_is_completed(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    with acting(key):
        automation = await process.create(type="once")
        CLOCK.move(3601)
        with pytest.raises(InvalidRequest) as begun:
            await process.automations.update(automation.id, AutomationChanges(run_at=int(time.time()) + 60))
    await process.run_at()
    with acting(key):
        assert (await process.automations.get(automation.id)).status == "completed"
        with pytest.raises(Conflict) as resumed:
            await process.automations.resume(automation.id)
        assert len(await process.list_invocations(automation)) == 1
    assert (begun.value.param, resumed.value.code) == ("run_at", "automation_completed")
    assert process.schedules.active == {}


@pytest.mark.parametrize("target", ["session", "agent"])
async def test_a_deleted_target_pauses_the_automation(
    process: AutomationFixture, key: ApiKeyWithSecret, target: str
) -> None:
    services = process.sessions.services
    with acting(key):
        if target == "session":
            await process.sessions.open()
            automation = await process.create(target=existing(process.sessions.session_id))
            await services.agent_sessions.delete(process.sessions.session_id)
        else:
            agent_id = await services.agents.create(AgentConfig(model="test/m", instructions=""))
            automation = await process.create(target=await process.target(agent=None, agent_id=agent_id))
            await services.agents.delete(agent_id)
    await process.run_at()

    reason = {"session": "target_session_failed", "agent": "target_agent_deleted"}[target]
    with acting(key):
        paused = await process.automations.get(automation.id)
        [invocation] = await process.list_invocations(automation)
        assert (paused.status, paused.pause_reason) == ("paused", reason)
        assert invocation.status == "failed"
        assert invocation.error is not None
        assert invocation.error.code == reason
        with pytest.raises(NotFound):
            await process.automations.resume(automation.id)
    assert process.schedules.active == {}


@pytest.mark.parametrize("change", ["revoked", "expired", "stopped", "tenant", "unknown", "scope"])
async def test_a_creator_who_may_not_run_it_any_more_pauses_the_automation(
    process: AutomationFixture, change: str
) -> None:
    expires_at = int(time.time()) + 3600 if change == "expired" else None
    key, other = await process.create_key(expires_at=expires_at), await process.create_key()
    if change == "scope":
        key = await process.create_key("knowledge:write")
    with acting(replace_scopes(key)):
        automation = await process.create()
    if change == "revoked":
        await process.keys.revoke(process.tenant, key.id)
    elif change == "expired":
        CLOCK.move(3601)
    elif change == "unknown":
        process.cloud.dynamodb.delete_item(
            TableName=process.keys_table, Key={"pk": {"S": f"api_key:{key.id}"}, "sk": {"S": "meta"}}
        )
    elif change != "scope":
        name = WHOLE_TENANT if change == "tenant" else stop_name("key", key.id)
        await process.cloud.store.stops.add(process.tenant, name, int(time.time()))
    await process.run_at()

    reason = {
        "revoked": "creator_key_revoked",
        "unknown": "creator_key_revoked",
        "expired": "creator_key_expired",
        "stopped": "creator_key_stopped",
        "tenant": "stopped",
        "scope": "creator_key_insufficient_scope",
    }[change]
    assert await process.list_sessions() == []
    assert process.schedules.active == {}
    with acting(other):
        [invocation] = await process.list_invocations(automation)
        assert invocation.error is not None
        assert invocation.error.code == reason
        assert (await process.automations.get(automation.id)).pause_reason == reason
        if change != "tenant":  # a request of a stopped tenant is refused
            resumed = await process.automations.resume(automation.id)
            assert (resumed.status, resumed.pause_reason) == ("active", None)
            await process.run_at(LATER)
            assert len(await process.list_sessions()) == 1


def replace_scopes(key: ApiKeyWithSecret) -> ApiKeyWithSecret:
    """Return a key as it was when it had the scope `use`."""
    return key.model_copy(update={"scopes": ["use"]})


async def test_a_key_of_another_tenant_with_the_same_id_runs_nothing(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    foreign = await process.create_key(tenant="another-tenant")
    with acting(foreign.model_copy(update={"tenant": process.tenant})):
        automation = await process.create()
    await process.run_at()
    with acting(key):
        assert (await process.automations.get(automation.id)).pause_reason == "creator_key_revoked"


async def test_a_run_has_the_rights_of_its_key_as_they_are_now(process: AutomationFixture) -> None:
    key = await process.create_key(models=["other/*"])
    with acting(key.model_copy(update={"models": []})):
        automation = await process.create()
    await process.run_at()
    with acting(key):
        [invocation] = await process.list_invocations(automation)
        assert invocation.error is not None
        assert invocation.error.code == "model_not_allowed"
        assert (await process.automations.get(automation.id)).status == "active"
    assert await process.list_sessions() == []


async def test_runs_act_for_whoever_changed_the_automation_last(process: AutomationFixture) -> None:
    strong, weak = await process.create_key(), await process.create_key(models=["other/*"])
    with acting(strong):
        automation = await process.create()
    with acting(weak), pytest.raises(Forbidden):
        await process.automations.update(automation.id, AutomationChanges(target=await process.target("Mine.")))
    with acting(weak), pytest.raises(Forbidden):  # not even another name, for which the runs would be those of `weak`
        await process.automations.update(automation.id, AutomationChanges(name="Mine"))
    with acting(strong):
        await process.automations.pause(automation.id)
    with acting(weak), pytest.raises(Forbidden):
        await process.automations.resume(automation.id)

    third = await process.create_key()
    with acting(third):
        await process.automations.resume(automation.id)
        await process.keys.revoke(process.tenant, strong.id)
    await process.run_at()
    with acting(third):
        assert [each.status for each in await process.list_invocations(automation)] == ["completed"]


async def test_only_an_api_key_creates_changes_and_resumes(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    token = replace(TOKEN, tenant=process.tenant)
    with acting(key):
        automation = await process.create()
        await process.automations.pause(automation.id)
    with acting(token):
        for refused in (
            process.create(),
            process.automations.update(automation.id, AutomationChanges(name="Mine")),
            process.automations.resume(automation.id),
        ):
            with pytest.raises(Forbidden) as error:
                await refused
            assert error.value.code == "automation_needs_api_key"
        await process.automations.invoke(automation.id)
    await process.work()
    with acting(key):
        [invocation] = await process.list_invocations(automation)
    assert (invocation.status, invocation.automation) == ("completed", None)


async def test_a_request_runs_an_automation_for_its_own_caller(process: AutomationFixture) -> None:
    strong, weak = await process.create_key(), await process.create_key(models=["other/*"])
    with acting(strong):
        automation = await process.create()
    with acting(weak):
        invoked = await process.automations.invoke(automation.id)
    await process.work()
    await process.work()
    with acting(strong):
        failed = await process.automations.get_invocation(automation.id, invoked.id)
        assert failed.error is not None
        assert failed.error.code == "model_not_allowed"
        assert (await process.automations.get(automation.id)).status == "active"
        await process.automations.invoke(automation.id)
    await process.work()
    assert len(await process.list_sessions()) == 1


async def test_a_requested_run_does_what_the_automation_was_when_it_was_requested(process: AutomationFixture) -> None:
    writer, caller = await process.create_key(), await process.create_key()
    with acting(writer):
        automation = await process.create(target=await process.target("What the caller has seen."))
    with acting(caller):
        invoked = await process.automations.invoke(automation.id)
    with acting(writer):
        changes = AutomationChanges(target=await process.target("What the writer wants of others."))
        await process.automations.update(automation.id, changes)
    await process.work()

    [process.sessions.session_id] = await process.list_sessions()
    process.sessions.agent_id = await process.sessions.services.reader.find_agent(process.sessions.session_id)
    await process.sessions.work()
    assert await process.sessions.inputs() == ["What the caller has seen."]
    with acting(caller):
        assert (await process.automations.get_invocation(automation.id, invoked.id)).automation is None


async def test_what_no_delivery_has_ended_within_a_day_is_over(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    """The worker was killed in each delivery, the last one included, or the task was lost."""
    with acting(key):
        once = await process.create(type="once")
        invoked = await process.automations.invoke(once.id)
    process.fire()
    process.queue.automations.clear()
    with acting(key):
        CLOCK.move(3_600 + OVERDUE_SECONDS - 60)
        assert (await process.automations.get(once.id)).status == "active"
        CLOCK.move(120)
        assert (await process.automations.get(once.id)).status == "completed"
        [listed] = (await process.automations.list(after=None, limit=1, newest_first=True, session_id=None)).data
        assert listed.status == "completed"
        [failed] = await process.list_invocations(once)
        assert failed == await process.automations.get_invocation(once.id, invoked.id)
        assert (failed.status, failed.error and failed.error.code) == ("failed", "queue_timeout")
        await process.automations.delete(once.id)


async def test_a_run_after_its_day_still_happens(process: AutomationFixture, key: ApiKeyWithSecret) -> None:
    """An operator has moved the message back from the dead-letter queue."""
    with acting(key):
        once = await process.create(type="once")
    tasks = process.fire()
    CLOCK.move(3_600 + OVERDUE_SECONDS + 60)
    await process.run(*tasks)
    with acting(key):
        assert [each.status for each in await process.list_invocations(once)] == ["completed"]
        assert (await process.automations.get(once.id)).status == "completed"


async def test_a_temporary_error_leaves_the_invocation_for_the_next_delivery(
    process: AutomationFixture, key: ApiKeyWithSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    with acting(key):
        automation = await process.create()

    async def refuse(*_: object) -> str:
        raise StoreUnavailable("DynamoDB does not answer.")

    with monkeypatch.context() as broken:
        broken.setattr(type(process.targets), "create_session", refuse)
        with pytest.raises(StoreUnavailable):
            await process.run_at()
        with acting(key):
            assert [each.status for each in await process.list_invocations(automation)] == ["queued"]
        await process.run_at(LATER, last=True)
    await process.run_at()
    with acting(key):
        later, first = await process.list_invocations(automation)
    assert later.error is not None
    assert (later.error.code, first.status) == ("store_unavailable", "completed")


async def test_without_authentication_anybody_creates_automations(
    process: AutomationFixture, key: ApiKeyWithSecret
) -> None:
    open_stack = AutomationFixture(process.cloud, process.tenant, process.keys_table, authenticates=False)
    with acting(replace(TOKEN, tenant=process.tenant)):
        automation = await open_stack.create()
    await open_stack.run_at()
    with acting(key):
        [invocation] = await open_stack.list_invocations(automation)
    assert invocation.status == "completed"
