"""Turns that wait for their session in line."""

import asyncio
from contextlib import suppress
from functools import partial

import pytest
from tests.clock import CLOCK
from tests.script_model import called, deadline, said, script
from tests.services.conftest import MakeTurnFixture
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture, ended

from stint.domain.errors import Cancelled, Conflict, DeadlineExceeded, NotFound
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnStatus
from stint.domain.messages import UserMessage
from stint.domain.when_busy import WhenBusy
from stint.services.runs.admission import Admission, StartedRun
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_run import TurnRun
from stint.services.turns.waiting_turns import read_waiting
from stint.store.waiting_line import ALIVE_SECONDS, MAX_WAITING, RECORD_SECONDS, WaitingLine


def admission(fixture: TurnFixture) -> Admission[TurnCreateRequest, TurnRun]:
    return fixture.services.turn_requests.make_admission(fixture.agent_id, fixture.session_id)


def line(fixture: TurnFixture) -> WaitingLine:
    return fixture.store.session_line(*fixture.ids)


def message(text: str, when_busy: WhenBusy = "enqueue") -> TurnCreateRequest:
    return TurnCreateRequest(messages=[UserMessage(content=text)], when_busy=when_busy)


async def accept(fixture: TurnFixture, text: str) -> str:
    """Accept a message whose request then dies."""
    return await admission(fixture).accept(message(text))


async def wait_in_line(fixture: TurnFixture, text: str, seconds: float = 600) -> Turn:
    """Run a turn after those that came before it."""
    admitted = admission(fixture)
    started = await admitted.start_now(partial(fixture.start, text, 600), "enqueue")
    if started is None:
        message_id = await admitted.accept(message(text))
        waited = await admitted.start(message_id, message(text), RequestContext(deadline(seconds)))
        assert not isinstance(waited, StartedRun)
        started = waited
    return ended(await fixture.play(started))


async def waits(fixture: TurnFixture, count: int) -> bool:
    return len(await line(fixture).read()) == count


async def test_a_turn_of_a_free_session_does_not_wait(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()

    assert (await wait_in_line(fixture, "one")).status is TurnStatus.completed
    assert await waits(fixture, 0)
    assert fixture.inbox.waiting == []


async def test_a_message_whose_request_died_keeps_its_place(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    dead = await accept(fixture, "one")
    waiting = asyncio.create_task(wait_in_line(fixture, "two"))
    await poll_until(partial(waits, fixture, 2))

    CLOCK.move(ALIVE_SECONDS * 1.1)
    await asyncio.sleep(0.1)
    assert not waiting.done()
    first = await admission(fixture).start(dead, message("one"), RequestContext(deadline(600)))
    assert not isinstance(first, StartedRun)
    await fixture.play(first)

    assert (await asyncio.wait_for(waiting, 30)).status is TurnStatus.completed
    assert [turn.input_messages[0].content for turn in await fixture.stored()] == ["one", "two"]


async def test_a_turn_that_came_later_does_not_overtake_one_that_waits(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said(), said())).open()
    waiting = await accept(fixture, "one")
    admitted = admission(fixture)

    assert await admitted.start_now(partial(fixture.start, "two"), "enqueue") is None
    assert await fixture.stored() == []

    await line(fixture).remove_place(waiting)
    assert await admitted.start_now(partial(fixture.turn, "two"), "enqueue") is not None


async def test_a_message_whose_time_runs_out_still_waits_and_can_be_read(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    await accept(fixture, "one")
    second = await accept(fixture, "two")

    with pytest.raises(DeadlineExceeded):
        await admission(fixture).start(second, message("two"), RequestContext(deadline(0)))

    assert [place.alive for place in await line(fixture).read()] == [True, False]
    turn = await fixture.get(second)
    assert (turn.turn_id, turn.status, turn.steps) == (second, TurnStatus.in_progress, [])
    assert turn.input_messages[0].content == "two"


async def test_the_line_is_limited(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    for _ in range(MAX_WAITING):
        await accept(fixture, "one")

    with pytest.raises(Conflict, match="20 messages wait") as refused:
        await accept(fixture, "two")
    assert refused.value.code == "too_many_waiting"


async def test_the_messages_of_a_deleted_session_are_deleted(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    dead = await accept(fixture, "one")
    second = await accept(fixture, "x" * 400_000)
    waiting = asyncio.create_task(admission(fixture).start(second, message("two"), RequestContext(deadline(600))))

    await fixture.sessions.delete(fixture.agent_id, fixture.session_id)

    with suppress(Cancelled):  # the request looked after its place was deleted, and before the message was
        assert await asyncio.wait_for(waiting, 30) == StartedRun(second, second)
    with pytest.raises(NotFound):
        await fixture.get(second)
    assert await line(fixture).get(dead) is None
    assert await waits(fixture, 0)


async def test_a_session_that_awaits_input_is_free(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    paused = await fixture.turn()

    turn = await wait_in_line(fixture, "two")

    assert (paused.status, turn.status) == (TurnStatus.awaiting_input, TurnStatus.completed)


async def test_a_cancelled_message_is_not_run_and_its_request_says_so(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    await accept(fixture, "one")
    second = await accept(fixture, "two")
    waiting = asyncio.create_task(admission(fixture).start(second, message("two"), RequestContext(deadline(600))))
    cancellation = fixture.services.make_turn_cancellation()

    cancelled = await cancellation.cancel(fixture.agent_id, fixture.session_id, second)

    assert (cancelled.turn_id, cancelled.status) == (second, TurnStatus.cancelled)
    with pytest.raises(Cancelled):
        await asyncio.wait_for(waiting, 30)
    assert (await fixture.get(second)).status is TurnStatus.cancelled
    assert await waits(fixture, 1)


async def test_a_message_is_started_once_by_two_processes(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    other = fixture.other_process(script(said()))
    waiting = await accept(fixture, "one")

    async def start(process: TurnFixture) -> Turn | StartedRun:
        run = await admission(process).start(waiting, message("one"), RequestContext(deadline(600)))
        return run if isinstance(run, StartedRun) else ended(await process.play(run))

    one, two = await asyncio.gather(start(fixture), start(other))

    [stored] = await fixture.stored()
    ids = {run.run_id if isinstance(run, StartedRun) else run.turn_id for run in (one, two)}
    assert ids == {stored.turn_id} == {waiting}


async def test_a_message_whose_start_died_is_started_again(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    waiting = await accept(fixture, "one")
    assert await line(fixture).claim_run(waiting, waiting)  # and then its process died

    run = await admission(fixture).start(waiting, message("one"), RequestContext(deadline(600)))

    assert not isinstance(run, StartedRun)
    turn = ended(await fixture.play(run))
    assert turn.turn_id != waiting
    assert (await fixture.get(waiting)).turn_id == turn.turn_id
    assert await waits(fixture, 0)


async def test_a_message_that_cannot_be_started_is_found_failed(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    body = message("one").model_copy(update={"input_shields": ["missing"]})
    waiting = await admission(fixture).accept(body)

    with pytest.raises(Exception, match="missing"):
        await admission(fixture).start(waiting, body, RequestContext(deadline(600)))

    turn = await fixture.get(waiting)
    assert turn.status is TurnStatus.failed
    assert turn.error is not None
    assert "missing" in turn.error.message
    assert await waits(fixture, 0)


async def test_a_message_is_dropped_after_a_day(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script()).open()
    waiting = await accept(fixture, "one")

    CLOCK.move(RECORD_SECONDS + 1)

    assert await waits(fixture, 0)
    with pytest.raises(NotFound):
        await fixture.get(waiting)


async def test_a_turn_that_is_started_while_it_is_read_is_found(make_turn_fixture: MakeTurnFixture) -> None:
    fixture = await make_turn_fixture(script(said())).open()
    turn = await fixture.turn("one")

    found = await read_waiting(fixture.turns, fixture.agent_id, fixture.session_id, turn.turn_id)

    assert found.turn_id == turn.turn_id
