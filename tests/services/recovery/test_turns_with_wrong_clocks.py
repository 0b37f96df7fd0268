"""Turns in processes whose wall clock is wrong by ten minutes."""

import asyncio
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.script_model import deadline, said, script, shape, until
from tests.services.conftest import MakeTurnFixture
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture

from stint.domain.errors import Conflict
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.turns import TurnCreateRequest, TurnStatus
from stint.domain.messages import UserMessage
from stint.services.runs.admission import StartedRun
from stint.services.runs.run_handle import RequestContext

LEASE = 30.0
WRONG = 600.0


async def open_with_dead_turn(make_turn_fixture: MakeTurnFixture) -> tuple[TurnFixture, str]:
    """Return a session whose turn's process died. Its clock was ahead."""
    fixture = await make_turn_fixture(script([asyncio.Event()]), lease=LEASE).open()
    with CLOCK.wrong(WRONG):
        turn = await fixture.start("one")
        turn.log.keeper.stop()
        await turn.run.close_inference()
    return fixture.other_process(script(said()), LEASE), turn.turn_id


async def test_a_session_whose_process_died_with_a_fast_clock_takes_a_turn_after_the_lease_time(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    fixture, dead = await open_with_dead_turn(make_turn_fixture)
    for _ in range(2):
        with pytest.raises(Conflict):
            await fixture.turn("two")
        CLOCK.move(LEASE / 2)

    assert (await fixture.turn("two")).status is TurnStatus.completed
    assert (await fixture.get(dead)).status is TurnStatus.failed


async def test_a_message_that_waits_for_such_a_session_is_started(make_turn_fixture: MakeTurnFixture) -> None:
    fixture, _ = await open_with_dead_turn(make_turn_fixture)
    request = TurnCreateRequest(messages=[UserMessage(content="two")], when_busy="enqueue")
    admission = fixture.services.turn_requests.make_admission(fixture.agent_id, fixture.session_id)
    context = RequestContext(deadline(600))
    waiting = asyncio.create_task(admission.start(await admission.accept(request), request, context))
    await poll_until(partial(has_seen_lease, fixture))

    CLOCK.move(LEASE)
    turn = await asyncio.wait_for(waiting, 30)

    assert not isinstance(turn, StartedRun)
    assert shape(await fixture.play(turn))[-1] == "turn_complete"


async def has_seen_lease(fixture: TurnFixture) -> bool:
    return any(key.pk.endswith(fixture.session_id) for key in fixture.store._table.seen_leases)


async def test_a_reader_shows_a_turn_whose_process_died_with_a_fast_clock_as_failed(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    fixture, dead = await open_with_dead_turn(make_turn_fixture)

    assert (await fixture.get(dead)).status is TurnStatus.in_progress
    CLOCK.move(LEASE)
    assert (await fixture.get(dead)).status is TurnStatus.failed


async def test_a_process_with_a_slow_clock_never_takes_the_session_of_a_turn_that_runs(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    gate = asyncio.Event()
    fixture = await make_turn_fixture(script([TextChunk("a"), gate, *said("b")]), lease=LEASE).open()
    turn = await fixture.start(seconds=900)
    slow = fixture.other_process(script(), LEASE)

    for _ in range(9):
        with CLOCK.wrong(-WRONG):
            with pytest.raises(Conflict):
                await slow.turn("two")
            assert (await slow.get(turn.turn_id)).status is TurnStatus.in_progress
        begun = turn.log.keeper.valid_until
        CLOCK.move(LEASE / 3)
        await until(lambda begun=begun: turn.log.keeper.valid_until > begun)  # type: ignore[misc]
    gate.set()

    assert shape(await fixture.play(turn))[-1] == "turn_complete"


async def test_a_process_with_a_fast_clock_interrupts_a_turn_that_runs_and_both_are_stored(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    """Its clock shows that the lease has lapsed, as it does for a process that died. Nobody writes without a lease."""
    gate = asyncio.Event()
    fixture = await make_turn_fixture(script([gate, *said()]), lease=LEASE).open()
    turn = await fixture.start("one", seconds=900)
    fast = fixture.other_process(script(said()), LEASE)

    with CLOCK.wrong(WRONG):
        following = await fast.turn("two")
    gate.set()
    events = await fixture.play(turn)

    assert following.status is TurnStatus.completed
    assert shape(events)[-1] == "failed interrupted"
    assert [each.status for each in await fixture.stored()] == [TurnStatus.failed, TurnStatus.completed]
