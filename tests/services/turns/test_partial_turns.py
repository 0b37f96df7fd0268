"""Unfinished steps of turns: what readers who rejoin get of them, and where it is stored."""

import asyncio
import time

from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, deadline, said, script, shape
from tests.services.conftest import MakeTurnFixture
from tests.services.polling import poll_until
from tests.services.turn_fixture import TurnFixture, die
from tests.services.turns.test_rejoined_turns import as_sent, numbered, rejoin, spoken, tail_of
from tests.store.conftest import Cloud

from stint.domain.errors import ModelError
from stint.domain.inference import ReasoningChunk, TextChunk
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.partial_steps import PartialStep
from stint.services.runs.partial_writer import FLUSH_SECONDS, PATIENCE_SECONDS
from stint.services.turns.turn_run import TurnRun
from stint.store.keys import turn_partials


async def parts_of(turn_fixture: TurnFixture, turn_id: str) -> list[PartialStep]:
    place = turn_partials(*turn_fixture.ids, turn_id)
    return [part for _, part in await turn_fixture.store.partial_steps.read(place, place.after_step(None))]


async def until_parts(turn_fixture: TurnFixture, turn_id: str, count: int) -> None:
    """Wait until so many parts of a turn's steps are stored."""

    async def are_stored() -> bool:
        return len(await parts_of(turn_fixture, turn_id)) >= count

    await poll_until(are_stored)


class Reader:
    """A reader that rejoined the stream of a turn."""

    def __init__(self, turn_fixture: TurnFixture, turn_id: str) -> None:
        self.found: list[NumberedEvent] = []
        self.task = asyncio.create_task(self.read(turn_fixture, turn_id))

    async def read(self, turn_fixture: TurnFixture, turn_id: str) -> None:
        ids = turn_fixture.agent_id, turn_fixture.session_id, turn_id
        async for event in await tail_of(turn_fixture).follow(*ids, -1, deadline(600)):
            self.found.append(event)

    @property
    def shape(self) -> list[str]:
        return shape([event.event for event in self.found])

    async def until(self, last: str) -> None:
        """Wait until the last event has this shape."""

        async def is_last() -> bool:
            return self.shape[-1:] == [last]

        await poll_until(is_last)


async def streamed_to(turn_fixture: TurnFixture, turn: TurnRun, last: str) -> "asyncio.Task[list[object]]":
    """Play a turn until its last event has this shape."""
    seen: list[object] = []

    async def play() -> list[object]:
        async for event in turn_fixture.turns.run(turn):
            seen.append(event)
        return seen

    playing = asyncio.create_task(play())

    async def is_last() -> bool:
        return shape(seen)[-1:] == [last]

    await poll_until(is_last)
    return playing


async def test_an_answer_that_breaks_off_is_replayed_with_its_text_and_numbers(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    broken: list[Part] = [TextChunk("one "), TextChunk("two "), ModelError("The line is dead.")]
    turn_fixture = await make_turn_fixture(script(called("nosuch"), broken)).open()
    turn = await turn_fixture.start()
    first = await turn_fixture.play(turn)

    assert shape(first)[-3:] == ["text one ", "text two ", "failed model_error"]
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)


async def test_text_of_a_step_that_runs_long_reaches_readers_before_it_ends(make_turn_fixture: MakeTurnFixture) -> None:
    gates = [asyncio.Event() for _ in range(3)]
    model = script([TextChunk("one "), gates[0], TextChunk("two "), gates[1], *spoken("x" * 600, "y" * 600), gates[2]])
    model.answers[0].insert(-2, gates[2])
    turn_fixture = await make_turn_fixture(model).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    reader = Reader(turn_fixture, turn.turn_id)
    CLOCK.move(PATIENCE_SECONDS)
    await reader.until("text one ")
    gates[0].set()
    await asyncio.sleep(0.1)
    CLOCK.move(FLUSH_SECONDS)
    await reader.until("text two ")
    gates[1].set()
    await reader.until(f"text {'y' * 600}")
    assert len(await parts_of(turn_fixture, turn.turn_id)) == 3
    late = Reader(turn_fixture, turn.turn_id)
    await late.until(f"text {'y' * 600}")
    gates[2].set()
    first = await playing
    await asyncio.gather(reader.task, late.task)

    assert as_sent(reader.found) == numbered(first)  # type: ignore[arg-type]
    assert as_sent(late.found) == numbered(first)  # type: ignore[arg-type]


async def test_readers_of_a_step_with_reasoning_miss_no_text(make_turn_fixture: MakeTurnFixture) -> None:
    gate = asyncio.Event()
    thoughts: list[Part] = [ReasoningChunk("Let "), ReasoningChunk("me see."), TextChunk("one "), gate]
    model = script([*thoughts, *spoken("two ", "three ", "four "), STOP])
    turn_fixture = await make_turn_fixture(model).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    reader = Reader(turn_fixture, turn.turn_id)
    CLOCK.move(PATIENCE_SECONDS)
    await reader.until("text one ")
    gate.set()
    first = await playing
    await reader.task

    assert as_sent(reader.found) == numbered(first)  # type: ignore[arg-type]


async def test_a_step_that_ends_soon_stores_nothing_more(make_turn_fixture: MakeTurnFixture, cloud: Cloud) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script(said(), [TextChunk("x" * 5_000), gate, STOP])).open()
    await turn_fixture.turn()
    cloud.forget()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, f"text {'x' * 5_000}")
    CLOCK.move(PATIENCE_SECONDS - 1)
    await asyncio.sleep(0.1)
    gate.set()
    await playing

    assert await parts_of(turn_fixture, turn.turn_id) == []
    assert cloud.calls["PutItem"] == 2


async def test_readers_of_a_turn_whose_process_died_get_the_text_of_its_last_step(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script(called("nosuch"), [TextChunk("one "), asyncio.Event()])).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    reader = Reader(turn_fixture, turn.turn_id)
    CLOCK.move(PATIENCE_SECONDS)
    await reader.until("text one ")
    turn.log.keeper.stop()
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    await die(turn)
    CLOCK.move(3)
    await reader.task

    assert reader.shape[-2:] == ["text one ", "failed interrupted"]
    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == as_sent(reader.found)
    await turn_fixture.other_process(script(said())).turn()  # seals the turn
    assert shape([event.event for event in await rejoin(turn_fixture, turn.turn_id)]) == reader.shape


async def test_parts_are_deleted_with_their_session_and_expire_within_an_hour(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script([TextChunk("one "), asyncio.Event()])).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    CLOCK.move(PATIENCE_SECONDS)
    await until_parts(turn_fixture, turn.turn_id, 1)
    place = turn_partials(*turn_fixture.ids, turn.turn_id)
    [item] = [item async for item in turn_fixture.store._table.query(place.pk)]
    assert 3_500 < item["expires_at"] - time.time() <= 3_600

    await turn_fixture.sessions.delete(turn_fixture.agent_id, turn_fixture.session_id)

    assert await parts_of(turn_fixture, turn.turn_id) == []
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    turn.log.keeper.stop()


async def test_a_process_that_lost_its_session_deletes_the_parts_that_it_stored(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    turn_fixture = await make_turn_fixture(script([TextChunk("one "), asyncio.Event()])).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    CLOCK.move(PATIENCE_SECONDS)
    await until_parts(turn_fixture, turn.turn_id, 1)
    turn.log.keeper.valid_until = 0
    turn.log.keeper.stop()
    CLOCK.move(FLUSH_SECONDS)

    async def are_deleted() -> bool:
        return await parts_of(turn_fixture, turn.turn_id) == []

    await poll_until(are_deleted)
    playing.cancel()
    await asyncio.gather(playing, return_exceptions=True)


async def test_a_part_that_cannot_be_stored_is_stored_with_the_next_one(
    make_turn_fixture: MakeTurnFixture, cloud: Cloud
) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script([TextChunk("one "), gate, *spoken("two"), gate])).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, "text one ")
    with cloud.proxy.failing("PutItem"):
        CLOCK.move(PATIENCE_SECONDS)
        await asyncio.sleep(1.5)
    CLOCK.move(FLUSH_SECONDS)
    await until_parts(turn_fixture, turn.turn_id, 1)

    [part] = await parts_of(turn_fixture, turn.turn_id)
    assert part.text == "one "
    gate.set()
    await playing


async def test_a_piece_that_is_too_long_for_a_part_reaches_readers_with_its_step(
    make_turn_fixture: MakeTurnFixture,
) -> None:
    gate = asyncio.Event()
    turn_fixture = await make_turn_fixture(script([TextChunk("x" * 300_000), gate, STOP])).open()
    turn = await turn_fixture.start()
    playing = await streamed_to(turn_fixture, turn, f"text {'x' * 300_000}")
    CLOCK.move(PATIENCE_SECONDS)
    await asyncio.sleep(0.2)
    assert await parts_of(turn_fixture, turn.turn_id) == []
    gate.set()
    first = await playing

    assert as_sent(await rejoin(turn_fixture, turn.turn_id)) == numbered(first)  # type: ignore[arg-type]
