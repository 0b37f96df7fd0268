"""A completed turn whose resumption dies, fails, or loses its session."""

import asyncio
from typing import Any

import pytest
from tests.services.conftest import MakeTurnFixture
from tests.services.faults import failing
from tests.services.turn_fixture import TurnFixture, called, die, run_out, said, script, shape
from tests.services.turns.test_completed_resumptions import USAGE, counted, parsed
from tests.store.conftest import Cloud
from tests.store.record_samples import record

from stint.domain.errors import Conflict, Interrupted, InvalidRequest, ModelError, NotFound, StoreUnavailable
from stint.domain.inference import AssistantAnswer, ToolResult, UserInput
from stint.domain.llama_stack.turns import TurnStatus


async def test_one_that_died_while_it_went_on_has_failed_and_keeps_the_answer_it_had(
    make_stage: MakeTurnFixture,
) -> None:
    model = script(counted("CALL t"), [asyncio.Event()], said("fine"))
    stage = await make_stage(model).open("t")
    first = await stage.turn("one")
    await die(await stage.resume(first.turn_id, ("a", "3")))

    shown = await stage.get(first.turn_id)
    with pytest.raises(Conflict, match="status is failed"):
        await stage.resume(first.turn_id, ("b", "3"))
    sealed = await stage.get(first.turn_id)
    await stage.turn("two")

    for dead in (shown, sealed):
        assert dead.error is not None
        assert (dead.status, dead.error.code) == (TurnStatus.failed, "interrupted")
        assert (dead.output_message, dead.usage) == (first.output_message, USAGE)
        assert [step.step_type for step in dead.steps] == ["inference", "tool_execution"]
    assert shown.completed_at == shown.steps[-1].completed_at
    assert model.requests[2].messages == (
        UserInput("one"),
        AssistantAnswer("CALL t", (parsed("a"),)),
        ToolResult("a", "t", "3"),
        UserInput("two"),
    )


async def test_a_model_that_fails_then_fails_the_turn_which_keeps_the_answer_it_had(
    make_stage: MakeTurnFixture,
) -> None:
    stage = await make_stage(script(said("CALL t"), [ModelError("no")])).open("t")
    first = await stage.turn()

    failed = await stage.resumed(first.turn_id, ("a", "3"))

    assert failed.error is not None
    assert (failed.status, failed.error.message) == (TurnStatus.failed, "no")
    assert failed.output_message == first.output_message
    with pytest.raises(Conflict, match="status is failed"):
        await stage.resume(first.turn_id, ("b", "3"))


async def test_one_that_was_cancelled_later_keeps_the_answer_it_had(make_stage: MakeTurnFixture) -> None:
    stage = await make_stage(script(said("CALL t"), called("t"), said("two"))).open("t")
    first = await stage.turn()
    await stage.resumed(first.turn_id, ("a", "3"))

    await stage.turn("two")

    cancelled, _ = await stage.stored()
    assert (cancelled.status, cancelled.output_message) == (TurnStatus.cancelled, first.output_message)


async def hold_to_resume(stage: TurnFixture, turn_id: str) -> Any:
    """Take the lease to resume a turn, let it run out, and return it."""
    lease = stage.store.session_leases.acquire(*stage.ids, turn_id, resume=True, seconds=0.01)
    await stage.lease_runs_out()
    return lease


async def test_one_whose_resumption_died_before_it_stored_anything_is_complete_and_can_be_resumed(
    make_stage: MakeTurnFixture,
) -> None:
    stage = await make_stage(script(said("CALL t"), said("done"))).open("t")
    first = await stage.turn()
    await hold_to_resume(stage, first.turn_id)

    shown = await stage.get(first.turn_id)
    done = await stage.resumed(first.turn_id, ("a", "3"))

    assert shown == first
    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


@pytest.mark.parametrize("resume", [False, True])
async def test_a_resumption_that_lost_its_session_writes_nothing_more(
    make_stage: MakeTurnFixture, resume: bool
) -> None:
    stage = await make_stage(script(said("CALL t"), said("next"))).open("t")
    first = await stage.turn()
    lease = await hold_to_resume(stage, first.turn_id)

    if resume:
        await stage.resumed(first.turn_id, ("a", "3"))
    else:
        await stage.turn("two")

    with pytest.raises(Interrupted):
        stage.store.turns.append(lease, 1, record(first.turn_id, "late"))
    turns = await stage.stored()
    assert [turn.status for turn in turns] == [TurnStatus.completed] * (1 if resume else 2)
    assert turns[0].output_message.content == ("next" if resume else "CALL t")


async def test_a_new_turn_that_could_not_begin_leaves_the_complete_one_to_be_resumed(
    make_stage: MakeTurnFixture,
) -> None:
    stage = await make_stage(script(said("CALL t"), said("done"))).open("t")
    first = await stage.turn()
    await hold_to_resume(stage, first.turn_id)
    with pytest.raises(InvalidRequest):
        await stage.start(toolgroups=["nosuch"])

    done = await stage.resumed(first.turn_id, ("a", "3"))

    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


async def test_a_resumption_whose_lease_ran_out_while_it_ran_ends_and_a_new_turn_finds_it_failed(
    make_stage: MakeTurnFixture,
) -> None:
    gate = asyncio.Event()
    stage = await make_stage(script(said("CALL t"), [gate, *said("late")], said("two"))).open("t")
    first = await stage.turn()
    slow = await stage.resume(first.turn_id, ("a", "3"))
    playing = asyncio.create_task(stage.play(slow))
    await run_out(slow)

    await stage.turn("two")
    gate.set()

    assert shape(await playing)[-1] == "failed interrupted"
    stored, _ = await stage.stored()
    assert (stored.status, stored.output_message) == (TurnStatus.failed, first.output_message)


async def test_responses_that_cannot_be_stored_leave_the_turn_complete(own_cloud: Cloud, tenant: str) -> None:
    stage = await TurnFixture(own_cloud.store, tenant, script(said("CALL t"), said(), said("done"))).open("t")
    first = await stage.turn()

    with failing(own_cloud, "PutItem"), pytest.raises(StoreUnavailable):
        await stage.resume(first.turn_id, ("a", "3"))
    shown = await stage.get(first.turn_id)
    done = await stage.resumed(first.turn_id, ("a", "3"))

    assert shown == first
    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


async def test_an_end_that_cannot_be_stored_frees_the_session_and_the_answer_stays(
    own_cloud: Cloud, tenant: str
) -> None:
    stage = await TurnFixture(own_cloud.store, tenant, script(said("CALL t"), said("lost"), said("two"))).open("t")
    first = await stage.turn()
    turn = await stage.resume(first.turn_id, ("a", "3"))

    with failing(own_cloud, "PutItem"):
        events = await stage.play(turn)
    following = await stage.turn("two")

    assert shape(events)[-1].startswith("failed")
    assert following.output_message.content == "two"
    stored, _ = await stage.stored()
    assert (stored.status, stored.output_message) == (TurnStatus.failed, first.output_message)


async def test_a_session_that_is_deleted_meanwhile_is_gone_and_nothing_more_is_written(
    make_stage: MakeTurnFixture, cloud: Cloud
) -> None:
    gate = asyncio.Event()
    stage = await make_stage(script(said("CALL t"), [gate, *said("late")])).open("t")
    first = await stage.turn()
    turn = await stage.resume(first.turn_id, ("a", "3"))

    await stage.sessions.delete(stage.agent_id, stage.session_id)
    left = cloud.items(stage.tenant)
    gate.set()
    events = await stage.play(turn)

    assert shape(events)[-1] == "failed interrupted"
    assert cloud.items(stage.tenant) == left
    with pytest.raises(NotFound):
        await stage.get(first.turn_id)
