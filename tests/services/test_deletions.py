import asyncio
from dataclasses import replace

import pytest
from tests.services.conftest import MakeTurnFixture
from tests.services.faults import failing
from tests.services.turn_fixture import TurnFixture, called, ended, said, script, shape
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.tasks import DeletionTask


async def assert_gone(stage: TurnFixture, turn_id: str) -> None:
    for reading in (
        stage.sessions.get(stage.agent_id, stage.session_id),
        stage.get(turn_id),
        stage.start(),
        stage.resume(turn_id, ("c0", "3")),
    ):
        with pytest.raises(NotFound):
            await reading


async def test_deleting_a_session_takes_its_turns_and_their_notes_along(
    make_stage: MakeTurnFixture, cloud: Cloud
) -> None:
    stage = await make_stage(script(said(), called("add"))).open("add")
    await stage.turn()
    paused = await stage.turn()

    await stage.sessions.delete(stage.agent_id, stage.session_id)

    await assert_gone(stage, paused.turn_id)
    left = {item["pk"]["S"].removeprefix(f"{stage.tenant}#") for item in cloud.items(stage.tenant)}
    assert left == {"agent", f"agent:{stage.agent_id}"}
    with pytest.raises(NotFound):
        await stage.sessions.delete(stage.agent_id, stage.session_id)


async def test_a_turn_that_runs_while_its_session_is_deleted_ends_and_writes_nothing_more(
    make_stage: MakeTurnFixture, cloud: Cloud
) -> None:
    gate = asyncio.Event()
    stage = await make_stage(script([gate, *called("add")])).open("add")
    turn = await stage.start()

    await stage.sessions.delete(stage.agent_id, stage.session_id)
    left = cloud.items(stage.tenant)
    gate.set()
    events = await stage.play(turn)

    assert ended(events).status is TurnStatus.failed
    assert shape(events)[-1] == "failed interrupted"
    assert cloud.items(stage.tenant) == left
    assert all("expires_at" in item for item in left if not item["pk"]["S"].startswith(f"{stage.tenant}#agent"))
    await assert_gone(stage, turn.turn_id)


async def test_deleting_an_agent_takes_its_sessions_along(make_stage: MakeTurnFixture, cloud: Cloud) -> None:
    stage = await make_stage(script(said())).open()
    turn = await stage.turn()
    for name in ("second", "third"):
        await stage.sessions.create(stage.agent_id, name)

    await stage.agents.delete(stage.agent_id)

    assert cloud.items(stage.tenant) == []
    await assert_gone(stage, turn.turn_id)
    with pytest.raises(NotFound):
        await stage.agents.delete(stage.agent_id)


async def test_no_turn_begins_on_a_deleted_agent_whose_configuration_a_process_still_has(
    make_stage: MakeTurnFixture,
) -> None:
    stage = await make_stage(script(said())).open()
    await stage.turn()
    assert stage.agents.cache

    await asyncio.to_thread(stage.store.agents.mark_deleted, stage.tenant, stage.agent_id)

    with pytest.raises(NotFound) as caught:
        await stage.start()
    assert caught.value.code == "agent_not_found"
    assert await stage.lease_turn() is None


@pytest.mark.parametrize("kind", ["session", "agent"])
async def test_what_is_not_finished_in_time_is_hidden_and_left_to_the_worker(
    make_stage: MakeTurnFixture, cloud: Cloud, kind: str
) -> None:
    stage = await make_stage(script(said())).open()
    turn = await stage.turn()
    task = DeletionTask(
        tenant=stage.tenant, agent_id=stage.agent_id, session_id=stage.session_id if kind == "session" else None
    )
    mark = stage.store.sessions.mark_deleted if kind == "session" else stage.store.agents.mark_deleted
    mark(*(stage.ids if kind == "session" else stage.ids[:2]))

    replace(stage.deletions, request_seconds=0).start_deletion(task)

    assert stage.inbox.tasks == [task]
    await assert_gone(stage, turn.turn_id)
    for _ in range(2):
        stage.deletions.continue_deletion(task, seconds=10)
    assert stage.inbox.tasks == [task]
    assert not [item for item in cloud.items(stage.tenant) if "session" in item["pk"]["S"]]


async def test_a_deletion_that_fails_is_left_to_the_worker(own_cloud: Cloud, tenant: str) -> None:
    stage = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await stage.turn()

    with failing(own_cloud, "BatchWriteItem"):
        await stage.sessions.delete(stage.agent_id, stage.session_id)

    assert stage.inbox.tasks == [DeletionTask(tenant=tenant, agent_id=stage.agent_id, session_id=stage.session_id)]
    await assert_gone(stage, turn.turn_id)
