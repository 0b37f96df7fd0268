"""A completed turn whose resumption dies, fails, or loses its session."""

import asyncio
from typing import Any

import pytest
from tests.script_model import called, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die, expire_lease_of
from tests.services.turns.test_completed_resumptions import USAGE, counted, parsed
from tests.store.conftest import Cloud
from tests.store.record_samples import record

from stint.domain.errors import Conflict, Interrupted, InvalidRequest, ModelError, NotFound, StoreUnavailable
from stint.domain.inference import AssistantAnswer, ToolResult, UserInput
from stint.domain.llama_stack.turns import TurnStatus


async def test_one_that_died_while_it_went_on_has_failed_and_keeps_the_answer_it_had(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    model = script(counted("CALL t"), [asyncio.Event()], said("fine"))
    turn_fixture = await make_turn_fixture(model).open("t")
    first = await turn_fixture.turn("one")
    await die(await turn_fixture.resume(first.turn_id, ("a", "3")))

    shown = await turn_fixture.get(first.turn_id)
    with pytest.raises(Conflict, match="status is failed"):
        await turn_fixture.resume(first.turn_id, ("b", "3"))
    sealed = await turn_fixture.get(first.turn_id)
    await turn_fixture.turn("two")

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
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), [ModelError("no")])).open("t")
    first = await turn_fixture.turn()

    failed = await turn_fixture.resumed(first.turn_id, ("a", "3"))

    assert failed.error is not None
    assert (failed.status, failed.error.message) == (TurnStatus.failed, "no")
    assert failed.output_message == first.output_message
    with pytest.raises(Conflict, match="status is failed"):
        await turn_fixture.resume(first.turn_id, ("b", "3"))


async def test_one_that_was_cancelled_later_keeps_the_answer_it_had(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), called("t"), said("two"))).open("t")
    first = await turn_fixture.turn()
    await turn_fixture.resumed(first.turn_id, ("a", "3"))

    await turn_fixture.turn("two")

    cancelled, _ = await turn_fixture.stored()
    assert (cancelled.status, cancelled.output_message) == (TurnStatus.cancelled, first.output_message)


async def hold_to_resume(turn_fixture: TurnFixture, turn_id: str) -> Any:
    """Take the lease to resume a turn, let it run out, and return it."""
    lease = await turn_fixture.store.session_leases.acquire(*turn_fixture.ids, turn_id, resume=True, seconds=0.01)
    await turn_fixture.expire_lease()
    return lease


async def test_a_turn_whose_resumption_stored_nothing_is_complete_and_resumable(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    """The resumption died before it stored anything."""
    turn_fixture = await make_turn_fixture(script(said("CALL t"), said("done"))).open("t")
    first = await turn_fixture.turn()
    await hold_to_resume(turn_fixture, first.turn_id)

    shown = await turn_fixture.get(first.turn_id)
    done = await turn_fixture.resumed(first.turn_id, ("a", "3"))

    assert shown == first
    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


@pytest.mark.parametrize("resume", [False, True])
async def test_a_resumption_that_lost_its_session_writes_nothing_more(
    make_turn_fixture: MakeTurnFixture, resume: bool
) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), said("next"))).open("t")
    first = await turn_fixture.turn()
    lease = await hold_to_resume(turn_fixture, first.turn_id)

    if resume:
        await turn_fixture.resumed(first.turn_id, ("a", "3"))
    else:
        await turn_fixture.turn("two")

    with pytest.raises(Interrupted):
        await turn_fixture.store.turns.append(lease, 1, record(first.turn_id, "late"))
    turns = await turn_fixture.stored()
    assert [turn.status for turn in turns] == [TurnStatus.completed] * (1 if resume else 2)
    assert turns[0].output_message.content == ("next" if resume else "CALL t")


async def test_a_new_turn_that_could_not_begin_leaves_the_complete_one_to_be_resumed(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(said("CALL t"), said("done"))).open("t")
    first = await turn_fixture.turn()
    await hold_to_resume(turn_fixture, first.turn_id)
    with pytest.raises(InvalidRequest):
        await turn_fixture.start(toolgroups=["nosuch"])

    done = await turn_fixture.resumed(first.turn_id, ("a", "3"))

    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


async def test_a_resumption_whose_lease_ran_out_has_failed_afterwards(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    """The lease ran out while it ran. A new turn finds it failed."""
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script(said("CALL t"), [gate, *said("late")], said("two"))).open("t")
    first = await turn_fixture.turn()
    slow = await turn_fixture.resume(first.turn_id, ("a", "3"))
    playing = asyncio.create_task(turn_fixture.play(slow))
    await expire_lease_of(slow)

    await turn_fixture.turn("two")
    gate.set()

    assert shape(await playing)[-1] == "failed interrupted"
    stored, _ = await turn_fixture.stored()
    assert (stored.status, stored.output_message) == (TurnStatus.failed, first.output_message)


async def test_responses_that_cannot_be_stored_leave_the_turn_complete(own_cloud: Cloud, tenant: str) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said("CALL t"), said(), said("done"))).open("t")
    first = await turn_fixture.turn()

    with own_cloud.proxy.failing("PutItem"), pytest.raises(StoreUnavailable):
        await turn_fixture.resume(first.turn_id, ("a", "3"))
    shown = await turn_fixture.get(first.turn_id)
    done = await turn_fixture.resumed(first.turn_id, ("a", "3"))

    assert shown == first
    assert (done.status, len(done.steps)) == (TurnStatus.completed, 3)


async def test_an_end_that_cannot_be_stored_frees_the_session_and_the_answer_stays(
    own_cloud: Cloud, tenant: str
) -> None:
    turn_fixture = await TurnFixture(own_cloud.store, tenant, script(said("CALL t"), said("lost"), said("two"))).open(
        "t"
    )
    first = await turn_fixture.turn()
    turn = await turn_fixture.resume(first.turn_id, ("a", "3"))

    with own_cloud.proxy.failing("PutItem"):
        events = await turn_fixture.play(turn)
    following = await turn_fixture.turn("two")

    assert shape(events)[-1].startswith("failed")
    assert following.output_message.content == "two"
    stored, _ = await turn_fixture.stored()
    assert (stored.status, stored.output_message) == (TurnStatus.failed, first.output_message)


async def test_a_session_that_is_deleted_meanwhile_is_gone_and_nothing_more_is_written(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script(said("CALL t"), [gate, *said("late")])).open("t")
    first = await turn_fixture.turn()
    turn = await turn_fixture.resume(first.turn_id, ("a", "3"))

    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)
    left = cloud.items(turn_fixture.tenant)
    gate.set()
    events = await turn_fixture.play(turn)

    assert shape(events)[-1] == "failed interrupted"
    assert cloud.items(turn_fixture.tenant) == left
    with pytest.raises(NotFound):
        await turn_fixture.get(first.turn_id)
