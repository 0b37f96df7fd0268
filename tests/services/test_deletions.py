import asyncio
from dataclasses import replace
from functools import partial

import pytest
from tests.script_model import called, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.tasks import DeletionTask


async def assert_gone(turn_fixture: TurnFixture, turn_id: str) -> None:
    for reading in (
        turn_fixture.sessions.get(turn_fixture.agent_id, turn_fixture.session_id),
        turn_fixture.get(turn_id),
        turn_fixture.start(),
        turn_fixture.resume(turn_id, ("c0", "3")),
    ):
        with pytest.raises(NotFound):
            await reading


async def test_deleting_a_session_takes_its_turns_and_their_notes_along(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    turn_fixture = await make_turn_fixture(script(said(), called("add"))).open("add")
    await turn_fixture.turn()
    paused = await turn_fixture.turn()

    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)

    await assert_gone(turn_fixture, paused.turn_id)
    left = {item["pk"]["S"].removeprefix(f"{turn_fixture.tenant}#") for item in cloud.items(turn_fixture.tenant)}
    assert left == {"agent", f"agent:{turn_fixture.agent_id}"}
    with pytest.raises(NotFound):
        await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)


async def test_a_turn_that_runs_while_its_session_is_deleted_ends_and_writes_nothing_more(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script([gate, *called("add")])).open("add")
    turn = await turn_fixture.start()

    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)
    left = cloud.items(turn_fixture.tenant)
    gate.set()
    events = await turn_fixture.play(turn)

    assert ended(events).status is TurnStatus.failed
    assert shape(events)[-1] == "failed interrupted"
    assert cloud.items(turn_fixture.tenant) == left
    assert all("expires_at" in item for item in left if not item["pk"]["S"].startswith(f"{turn_fixture.tenant}#agent"))
    await assert_gone(turn_fixture, turn.turn_id)


async def test_deleting_an_agent_takes_its_sessions_along(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    turn = await turn_fixture.turn()
    for name in ("second", "third"):
        await turn_fixture.sessions.create(turn_fixture.agent_id, name)

    await turn_fixture.agents.delete(turn_fixture.agent_id)

    assert cloud.items(turn_fixture.tenant) == []
    await assert_gone(turn_fixture, turn.turn_id)
    with pytest.raises(NotFound):
        await turn_fixture.agents.delete(turn_fixture.agent_id)


async def test_no_turn_begins_on_a_deleted_agent_whose_configuration_a_process_still_has(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    await turn_fixture.turn()
    assert turn_fixture.agents.cache

    await turn_fixture.store.agents.mark_deleted(turn_fixture.tenant, turn_fixture.agent_id)

    with pytest.raises(NotFound) as caught:
        await turn_fixture.start()
    assert caught.value.code == "agent_not_found"
    assert await turn_fixture.lease_turn() is None


@pytest.mark.parametrize("kind", ["session", "agent"])
async def test_what_is_not_finished_in_time_is_hidden_and_left_to_the_worker(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud, kind: str
) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    turn = await turn_fixture.turn()
    task = DeletionTask(
        tenant=turn_fixture.tenant,
        agent_id=turn_fixture.agent_id,
        session_id=turn_fixture.session_id if kind == "session" else None,
    )
    mark_deleted = (
        partial(turn_fixture.store.sessions.mark_deleted, *turn_fixture.ids)
        if kind == "session"
        else partial(turn_fixture.store.agents.mark_deleted, *turn_fixture.ids[:2])
    )

    await replace(turn_fixture.deletions, request_seconds=0).start_deletion(task, mark_deleted)

    assert turn_fixture.inbox.tasks == [task]
    assert turn_fixture.inbox.delayed == [task.before_mark()]
    await assert_gone(turn_fixture, turn.turn_id)
    for _ in range(2):
        await turn_fixture.deletions.continue_deletion(task, seconds=10)
    assert turn_fixture.inbox.tasks == [task]
    assert not [item for item in cloud.items(turn_fixture.tenant) if "session" in item["pk"]["S"]]


async def test_a_deletion_that_fails_is_left_to_the_worker(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said())).open()
    turn = await turn_fixture.turn()

    with own_cloud.proxy.failing("BatchWriteItem"):
        await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)

    [task] = turn_fixture.inbox.delayed
    assert turn_fixture.inbox.tasks == []
    await assert_gone(turn_fixture, turn.turn_id)
    await turn_fixture.deletions.continue_deletion(task, seconds=10)
    assert not [item for item in own_cloud.items(tenant) if turn_fixture.session_id in item["pk"]["S"]]
