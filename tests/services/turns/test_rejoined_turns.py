"""Streams of turns that readers rejoin: the events of the first stream, with its numbers."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, deadline, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.turn_fixture import TurnFixture, die
from tests.services.turns.test_shielded_turns import shielded
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, NotFound, StintError
from stint.domain.inference import RefusalChunk, TextChunk
from stint.domain.llama_stack.events import Event, NumberedEvent
from stint.http.routes.turns import encode_event
from stint.services.turns.turn_tail import TurnTail


def spoken(*pieces: str) -> list[Part]:
    return [*(TextChunk(piece) for piece in pieces), STOP]


def sent(events: Sequence[Event]) -> list[bytes]:
    """Return events as they are sent."""
    return [encode_event(event) for event in events]


def tail_of(turn_fixture: TurnFixture) -> TurnTail:
    return turn_fixture.services.turn_requests.tail


async def rejoin(turn_fixture: TurnFixture, turn_id: str, after: int = -1, seconds: float = 60) -> list[NumberedEvent]:
    ids = turn_fixture.agent_id, turn_fixture.session_id, turn_id
    events = await tail_of(turn_fixture).follow(*ids, after, deadline(seconds))
    return [event async for event in events]


def numbered(events: Sequence[Event], first: int = 0) -> list[tuple[int, bytes]]:
    return list(enumerate(sent(events), first))


def as_sent(events: Sequence[NumberedEvent]) -> list[tuple[int, bytes]]:
    return [(event.number, encode_event(event.event)) for event in events]


async def test_a_turn_is_replayed_with_the_pieces_and_numbers_of_its_stream(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(spoken("Good ", "mor", "ning", ", ", "x" * 80, "!"))).open()
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)

    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)


async def test_a_resumed_turn_is_replayed_as_both_its_streams(make_turn_fixture: MakeTurnFixture) -> None:
    answers = script(called("add", text="Let me see."), called("nosuch"), spoken("It ", "is 3."))
    turn_fixture = await make_turn_fixture(answers).open("add")
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)
    waiting = await rejoin(turn_fixture, turn.turn_id)
    second = await turn_fixture.play(await turn_fixture.resume(turn.turn_id, ("c0", "3")))

    assert as_sent(waiting) == numbered(first)
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered([*first, *second])


@pytest.mark.parametrize("window", [0, 100])
async def test_checks_by_shields_are_replayed(cloud: Cloud, tenant: str, window: int) -> None:
    pieces = ["Many words " * 20, "and more. " * 30, "End."]
    turn_fixture = await shielded(
        cloud, tenant, script(spoken(*pieces)), window, input_shields=["words"], output_shields=["words"]
    )
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)

    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)


async def test_a_blocked_answer_is_replayed_up_to_its_released_part(cloud: Cloud, tenant: str) -> None:
    pieces = ["Many words " * 40, "then dynamite. ", "Even more words. " * 20]
    turn_fixture = await shielded(cloud, tenant, script(spoken(*pieces)), 100, output_shields=["words"])
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)

    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)


async def test_a_refusal_is_replayed_as_text(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([RefusalChunk("I "), RefusalChunk("won't."), STOP])).open()
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)

    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)


async def test_a_turn_that_was_cancelled_while_it_waited_ends_with_its_status(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("add"), said())).open("add")
    waiting = await turn_fixture.turn()
    await turn_fixture.turn("Never mind.")

    events = await rejoin(turn_fixture, waiting.turn_id)

    assert shape([event.event for event in events])[-2:] == ["turn_awaiting_input", "turn_complete"]
    assert events[-1].event.turn.status == "cancelled"  # type: ignore[union-attr]


async def test_a_reader_gets_the_events_after_the_one_that_it_has(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(spoken("one ", "two ", "three"))).open()
    turn = await turn_fixture.start()
    first = numbered(await turn_fixture.play(turn))

    for after in range(len(first)):
        assert as_sent(await rejoin(turn_fixture, turn.turn_id, after)) == first[after + 1 :]


async def test_several_readers_follow_a_running_turn_to_its_end(make_turn_fixture: MakeTurnFixture) -> None:
    gate = asyncio.Event()
    model = script(called("nosuch"), [TextChunk("Well, "), gate, TextChunk("done."), STOP])
    turn_fixture = await make_turn_fixture(model).open()
    turn = await turn_fixture.start()
    playing = asyncio.create_task(turn_fixture.play(turn))
    readers = [asyncio.create_task(rejoin(turn_fixture, turn.turn_id, after)) for after in (-1, -1, 2)]
    await asyncio.sleep(0.5)
    gate.set()
    first = numbered(await playing)

    assert [as_sent(await reader) for reader in readers] == [first, first, first[3:]]


async def test_the_reader_of_a_turn_whose_process_died_gets_its_failure(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), [asyncio.Event()])).open()
    turn = await turn_fixture.start()
    async with aclosing(turn_fixture.turns.run(turn)) as events:
        seen = [await anext(events) for _ in range(8)]
    reading = asyncio.create_task(rejoin(turn_fixture, turn.turn_id))
    await asyncio.sleep(0.1)
    await die(turn)
    CLOCK.move(3)

    found = await reading

    assert sent(seen)[:7] == sent([event.event for event in found])[:7]
    assert shape([found[-1].event]) == ["failed interrupted"]
    assert shape([event.event for event in await rejoin(turn_fixture, turn.turn_id, 500)]) == ["failed interrupted"]


async def test_a_number_beyond_the_end_of_a_turn_is_refused(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script(said())).open()
    turn = await turn_fixture.turn()

    with pytest.raises(InvalidRequest, match="has 5 events, numbered from 0") as refused:
        await rejoin(turn_fixture, turn.turn_id, 5)

    assert refused.value.param == "starting_after"


async def test_the_reader_of_a_deleted_turn_is_told_that_it_does_not_exist(make_turn_fixture: MakeTurnFixture) -> None:
    turn_fixture = await make_turn_fixture(script([asyncio.Event()])).open()
    turn = await turn_fixture.start()
    reading = asyncio.create_task(rejoin(turn_fixture, turn.turn_id))
    await asyncio.sleep(0.1)
    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)
    CLOCK.move(3)

    with pytest.raises(NotFound):
        await reading
    with pytest.raises(NotFound):
        await rejoin(turn_fixture, turn.turn_id)
    turn.log.keeper.stop()
    await turn.run.close_inference()


async def test_a_quiet_stream_is_read_less_often_and_until_the_deadline_only(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    turn_fixture = await make_turn_fixture(script([asyncio.Event()])).open()
    turn = await turn_fixture.start()
    cloud.forget()

    with pytest.raises(StintError, match="time limit"):
        await rejoin(turn_fixture, turn.turn_id, seconds=3)

    assert cloud.calls["Query"] <= 14  # two each time
    await die(turn)
