"""Turns that their client cancels, in this process and from another one."""

import asyncio
from contextlib import aclosing
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, Script, called, said, script, shape, until
from tests.services.conftest import MakeTurnFixture
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.caller import set_end_user
from stint.domain.errors import Conflict, Forbidden, NotFound
from stint.domain.ids import new_id
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_signals import TurnRef
from stint.services.turns.cancellation import ENDING_SECONDS
from stint.spending.stop_monitor import WATCH_SECONDS
from stint.store import keys


def blocked() -> list[Part]:
    """Return an answer that never ends."""
    return [TextChunk("I am"), asyncio.Event()]


async def cancel(fixture: TurnFixture, turn_id: str) -> Turn:
    return await fixture.services.turn_requests.cancellation.cancel(fixture.agent_id, fixture.session_id, turn_id)


async def has_signal(fixture: TurnFixture) -> bool:
    """Return whether the session's record has the signal to cancel its turn."""
    found = await fixture.store._table.get(keys.session_state(*fixture.ids))
    return found is not None and "cancelled_turn" in found


async def test_a_turn_that_another_process_cancels_ends_at_the_next_read_with_its_steps(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    model = script(called("nosuch"), blocked(), said("Hi"))
    fixture = await make_turn_fixture(model).open()
    started = await fixture.start()
    running = asyncio.create_task(fixture.play(started))
    await until(lambda: len(model.requests) == 2)

    cancelling = asyncio.create_task(cancel(fixture.other_process(script()), started.turn_id))
    await poll_until(partial(has_signal, fixture))
    CLOCK.move(WATCH_SECONDS)
    turn = ended(await asyncio.wait_for(running, 30))

    assert (turn.status, turn.error) == (TurnStatus.cancelled, None)
    assert [step.step_type for step in turn.steps] == ["inference", "tool_execution"]
    assert turn.receipt is not None
    assert await cancelling == turn == await fixture.get(started.turn_id)
    assert await fixture.lease_turn() is None
    assert model.closed == 2
    assert (await fixture.turn()).status == TurnStatus.completed


async def test_the_stream_of_a_cancelled_turn_ends_with_turn_complete(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(blocked())
    fixture = await make_turn_fixture(model).open()
    started = await fixture.start()
    running = asyncio.create_task(fixture.play(started))
    await until(lambda: len(model.requests) == 1)

    cancelling = asyncio.create_task(cancel(fixture, started.turn_id))
    await poll_until(partial(has_signal, fixture))
    CLOCK.move(WATCH_SECONDS)
    events = await asyncio.wait_for(running, 30)

    assert shape(events) == ["turn_start", "start inference", "text I am", "turn_complete"]
    assert started.error is None
    await cancelling


async def test_a_cancellation_that_is_not_stored_is_not_announced(own_cloud: Cloud, tenant: str) -> None:
    model = script(blocked(), said("Hi"))
    fixture = await TurnFixture(own_cloud.store, tenant, model).open()
    started = await fixture.start()
    running = asyncio.create_task(fixture.play(started))
    await until(lambda: len(model.requests) == 1)
    run = TurnRef(fixture.agent_id, fixture.session_id, started.turn_id)
    assert await fixture.store.run_signals.cancel_turn(tenant, run)

    with own_cloud.proxy.failing("PutItem", "ended_as"):
        CLOCK.move(WATCH_SECONDS)
        events = await asyncio.wait_for(running, 30)

    assert shape(events)[-1] == "failed store_unavailable"
    assert ended(events).status is (await fixture.get(started.turn_id)).status is TurnStatus.failed
    assert (await fixture.turn()).status is TurnStatus.completed


async def test_a_turn_that_waits_for_its_client_is_cancelled_and_cannot_be_resumed(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    fixture = await make_turn_fixture(script(called("add"), said("Hi"))).open("add")
    paused = await fixture.turn()

    turn = await cancel(fixture, paused.turn_id)

    assert (turn.status, [step.step_type for step in turn.steps]) == (TurnStatus.cancelled, ["inference"])
    assert await fixture.store.turns.get_pending(*fixture.ids, paused.turn_id) is None
    assert await fixture.lease_turn() is None
    with pytest.raises(Exception, match="cancelled"):
        await fixture.resume(paused.turn_id, ("c0", "3"))
    assert (await fixture.turn()).status == TurnStatus.completed


@pytest.mark.parametrize("reacts", [True, False])
async def test_a_turn_that_is_being_resumed_is_cancelled(make_turn_fixture: MakeTurnFixture, reacts: bool) -> None:
    fixture = await make_turn_fixture(script(called("look"), said("Hi"))).open("look")
    turn_id = (await fixture.turn()).turn_id
    lease = await fixture.store.session_leases.acquire(*fixture.ids, turn_id, resume=True, seconds=300)

    cancelling = asyncio.create_task(cancel(fixture, turn_id))
    await poll_until(partial(has_signal, fixture))
    if reacts:
        await lease.release()
    while not cancelling.done():
        CLOCK.move(ENDING_SECONDS / 10)
        await asyncio.sleep(0.02)

    assert (await cancelling).status == TurnStatus.cancelled
    with pytest.raises(Conflict):
        await fixture.resume(turn_id, ("c0", "a lamp"))
    assert (await fixture.turn()).status == TurnStatus.completed


async def test_a_turn_that_has_ended_is_unchanged(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    turn = await fixture.turn()

    assert await cancel(fixture, turn.turn_id) == turn
    assert await cancel(fixture, turn.turn_id) == turn


async def test_a_turn_whose_process_does_not_react_is_ended_without_it(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("nosuch"), said("Hi"))).open()
    stuck = await fixture.start()
    async with aclosing(fixture.turns.run(stuck)) as events:
        async for event in events:
            if shape([event]) == ["complete inference"]:
                break
    other = fixture.other_process(script(said("Hi")))

    cancelling = asyncio.create_task(cancel(other, stuck.turn_id))
    while not cancelling.done():
        CLOCK.move(ENDING_SECONDS / 10)
        await asyncio.sleep(0.02)

    turn = await cancelling
    assert (turn.status, [step.step_type for step in turn.steps]) == (TurnStatus.cancelled, ["inference"])
    assert await fixture.lease_turn() is None
    assert (await other.turn()).status == TurnStatus.completed


async def test_a_cancelled_turn_does_not_cancel_the_next_one(make_turn_fixture: MakeTurnFixture) -> None:
    model: Script = script(said(), blocked())
    fixture = await make_turn_fixture(model).open()
    first = await fixture.turn()
    second = await fixture.start()
    running = asyncio.create_task(fixture.play(second))
    await until(lambda: len(model.requests) == 2)

    assert await cancel(fixture, first.turn_id) == first
    assert not await has_signal(fixture)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_an_unknown_turn_is_not_found(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()

    with pytest.raises(NotFound):
        await cancel(fixture, new_id())


async def test_the_turn_of_another_end_user_cannot_be_cancelled(make_turn_fixture: MakeTurnFixture) -> None:
    model = script(blocked())
    set_end_user("ada")
    try:
        fixture = await make_turn_fixture(model).open()
        started = await fixture.start()
        set_end_user("bob")
        with pytest.raises(Forbidden, match="another end user"):
            await cancel(fixture, started.turn_id)
    finally:
        set_end_user(None)
    assert not await has_signal(fixture)
    await started.run.close_inference()
    started.log.keeper.stop()


async def test_a_simple_turn_reads_no_signals(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    await fixture.turn()  # a process compares the copies of the stops at its first read
    cloud.forget()

    await fixture.turn()

    assert "BatchGetItem" not in cloud.calls
