"""Turns that wait for their session in line."""

import asyncio
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture, ended

from stint.domain.errors import Conflict, DeadlineExceeded, NotFound
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.services.admission import Admission
from stint.store.waiting_line import ALIVE_SECONDS, MAX_WAITING, WaitingLine


def admission(fixture: TurnFixture) -> Admission:
    return fixture.services.make_turn_admission(fixture.agent_id, fixture.session_id)


def line(fixture: TurnFixture) -> WaitingLine:
    return fixture.store.session_line(*fixture.ids)


async def wait_in_line(fixture: TurnFixture, text: str, seconds: float = 600) -> Turn:
    """Run a turn after those that came before it."""
    start = partial(fixture.start, text, 600)
    started = await admission(fixture).start_now(start, "enqueue")
    if started is None:
        started = await admission(fixture).start_later(start, "enqueue", deadline(seconds))
    return ended(await fixture.play(started))


async def waits(fixture: TurnFixture, count: int) -> bool:
    return len(await line(fixture).read()) == count


async def test_a_turn_of_a_free_session_does_not_wait(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()

    assert (await wait_in_line(fixture, "one")).status is TurnStatus.completed
    assert await waits(fixture, 0)


async def test_a_request_whose_process_died_loses_its_place(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    await line(fixture).join()
    waiting = asyncio.create_task(wait_in_line(fixture, "one"))
    await poll_until(partial(waits, fixture, 2))

    CLOCK.move(ALIVE_SECONDS * 0.9)
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await poll_until(partial(waits, fixture, 2))
    CLOCK.move(ALIVE_SECONDS * 0.2)

    assert (await asyncio.wait_for(waiting, 30)).status is TurnStatus.completed


async def test_a_turn_that_came_later_does_not_overtake_one_that_waits(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    place = await line(fixture).join()

    assert await admission(fixture).start_now(partial(fixture.start, "two"), "enqueue") is None
    assert await fixture.stored() == []

    await line(fixture).leave(place)
    assert await admission(fixture).start_now(partial(fixture.turn, "two"), "enqueue") is not None


async def test_a_turn_whose_time_runs_out_leaves_the_line(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    await line(fixture).join()

    with pytest.raises(DeadlineExceeded):
        await admission(fixture).start_later(fixture.start, "enqueue", deadline(0))

    assert await waits(fixture, 1)


async def test_the_line_is_limited(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    for _ in range(MAX_WAITING):
        await line(fixture).join()

    with pytest.raises(Conflict, match="20 requests wait") as refused:
        await line(fixture).join()
    assert refused.value.code == "too_many_waiting"


async def test_a_request_of_a_deleted_session_stops_waiting(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    place = await line(fixture).join()
    waiting = asyncio.create_task(wait_in_line(fixture, "one"))
    await poll_until(partial(waits, fixture, 2))

    await fixture.sessions.delete(fixture.agent_id, fixture.session_id)
    await line(fixture).leave(place)

    with pytest.raises(NotFound):
        await asyncio.wait_for(waiting, 30)
    assert await waits(fixture, 0)


async def test_a_session_that_awaits_input_is_free(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    paused = await fixture.turn()

    turn = await wait_in_line(fixture, "two")

    assert (paused.status, turn.status) == (TurnStatus.awaiting_input, TurnStatus.completed)
