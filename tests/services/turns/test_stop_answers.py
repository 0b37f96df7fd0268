"""Turns that begin with what their process knows of the stops, and for how long it holds."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.clock import CLOCK
from tests.script_model import Part, said, script, until
from tests.services.turn_fixture import TurnFixture, ended
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.errors import Stopped, StoreUnavailable
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.principals import Principal
from stint.spending.stop_monitor import ANSWER_SECONDS, WATCH_SECONDS, age_of


@pytest.fixture
async def idle(own_cloud: Cloud, tenant: str) -> TurnFixture:
    """Return a process that has read the stops, and has no runs."""
    fixture = await TurnFixture(own_cloud.store, tenant, script(said(), *(said() for _ in range(40)))).open()
    await fixture.turn()
    return fixture


@asynccontextmanager
async def running(idle: TurnFixture) -> AsyncGenerator[asyncio.Task[TurnStatus], None]:
    """Run a turn of another session, which does not end, while the body runs."""
    model: list[Part] = [TextChunk("I am"), asyncio.Event()]
    other = TurnFixture(idle.store, idle.tenant, script(model))
    other.turns.meters.stops = idle.turns.meters.stops
    await other.open()
    started = await other.start()

    async def play() -> TurnStatus:
        return ended(await other.play(started)).status

    task = asyncio.create_task(play())
    for stop in idle.turns.meters.stops.runs:
        await stop.confirm()
    yield task
    task.cancel()
    await asyncio.wait({task})


async def stop(idle: TurnFixture) -> None:
    """Stop the session of the idle process, but not that of the turn that runs."""
    await idle.store.stops.add(idle.tenant, f"session:{idle.session_id}", 1_700_000_000)


def of_stops(_: str, body: str) -> bool:
    return "#stop" in body


def every_second() -> Callable[[str, str], bool]:
    """Return a function that chooses every second attempt to read stops."""
    seen: list[str] = []

    def choose(operation: str, body: str) -> bool:
        seen.extend([operation] if of_stops(operation, body) else [])
        return of_stops(operation, body) and len(seen) % 2 == 1

    return choose


async def test_a_turn_reads_no_stops_beside_others(idle: TurnFixture, own_cloud: Cloud) -> None:
    async with running(idle):
        with CLOCK.stop(), own_cloud.proxy.watch() as seen:
            await idle.start()

    assert not any("#stop" in each for each in seen)


async def test_a_turn_alone_reads_the_stops_although_the_answer_of_the_last_one_is_new(
    idle: TurnFixture, own_cloud: Cloud
) -> None:
    with CLOCK.stop(), own_cloud.proxy.watch() as seen:
        await idle.turn()

    assert sum("#stop" in each for each in seen) == 1


async def test_two_seconds_after_a_stop_a_process_with_runs_refuses_new_work(idle: TurnFixture) -> None:
    async with running(idle):
        await stop(idle)

        with CLOCK.wrong(ANSWER_SECONDS), pytest.raises(Stopped):  # the watch is not due
            await idle.start()


async def test_the_next_read_of_the_watch_refuses_new_work(idle: TurnFixture) -> None:
    async with running(idle) as others:
        await stop(idle)
        CLOCK.move(WATCH_SECONDS)
        await until(lambda: f"session:{idle.session_id}" in idle.turns.meters.stops.known)

        with CLOCK.stop(), pytest.raises(Stopped):
            await idle.start()

        assert not others.done()


@pytest.mark.parametrize("name", ["session:{}", "tenant", "key:k1"])
async def test_a_lifted_stop_allows_new_work_although_the_last_answer_has_it(
    idle: TurnFixture, own_cloud: Cloud, name: str
) -> None:
    name = name.format(idle.session_id)
    async with running(idle):
        set_principal(Principal(idle.tenant, "s", frozenset({"use"}), "k1"))
        monitor = idle.turns.meters.stops
        monitor.known, monitor.known_at = {name: 1_700_000_000}, (time.time(), time.monotonic())

        with CLOCK.stop(), own_cloud.proxy.watch() as seen:
            await idle.start()
        set_principal(None)

    assert sum("#stop" in each for each in seen) == 1


async def test_a_process_that_was_frozen_reads_the_stops_again(idle: TurnFixture, own_cloud: Cloud) -> None:
    """Its monotonic clock stands still, so its watch is not due."""
    async with running(idle):
        await stop(idle)

        with CLOCK.wrong(3_600), own_cloud.proxy.watch() as seen, pytest.raises(Stopped):
            await idle.start()

    assert any("#stop" in each for each in seen)


def test_an_answer_is_as_old_as_the_clock_says_that_has_advanced_more() -> None:
    with CLOCK.stop():
        moment = time.time(), time.monotonic()
        with CLOCK.wrong(30):
            assert age_of(moment) == pytest.approx(30)
        CLOCK.move(3)
        with CLOCK.wrong(-30):
            assert age_of(moment) == pytest.approx(3)


async def test_the_age_of_an_answer_counts_from_before_its_read(idle: TurnFixture, own_cloud: Cloud) -> None:
    async with running(idle):
        began = time.monotonic()

        def take_long(_: str, body: str) -> None:
            if "#stop" in body:
                CLOCK.move(ANSWER_SECONDS)

        with own_cloud.proxy.watching(take_long):
            await idle.turns.meters.stops.read()
        known_at = idle.turns.meters.stops.known_at

        assert known_at is not None
        assert age_of(known_at) >= ANSWER_SECONDS
        assert known_at[1] >= began


async def test_turns_begin_while_half_of_the_reads_are_throttled(idle: TurnFixture, own_cloud: Cloud) -> None:
    with own_cloud.proxy.throttling(every_second()):
        turns = [await idle.turn() for _ in range(10)]

    assert {each.status for each in turns} == {TurnStatus.completed}


async def test_turns_of_a_new_process_begin_while_half_of_the_reads_are_throttled(
    idle: TurnFixture, own_cloud: Cloud
) -> None:
    for _ in range(5):
        fixture = TurnFixture(own_cloud.other_process(), idle.tenant, idle.model)
        fixture.agent_id, fixture.session_id = idle.agent_id, idle.session_id
        with own_cloud.proxy.throttling(every_second()):
            assert (await fixture.turn()).status == TurnStatus.completed


async def test_a_turn_that_cannot_read_the_stops_is_refused(idle: TurnFixture, own_cloud: Cloud) -> None:
    with own_cloud.proxy.throttling(of_stops), pytest.raises(StoreUnavailable):
        await idle.start()


async def test_a_process_with_runs_whose_answer_is_old_refuses_turns_if_it_cannot_read_the_stops(
    idle: TurnFixture, own_cloud: Cloud
) -> None:
    async with running(idle) as others:
        with own_cloud.proxy.throttling(of_stops):
            with CLOCK.wrong(2 * ANSWER_SECONDS), pytest.raises(StoreUnavailable):
                await idle.start()
            await idle.start()

        assert not others.done()


async def test_a_throttled_watch_ends_no_run(idle: TurnFixture, own_cloud: Cloud) -> None:
    reads: list[str] = []

    def throttle(operation: str, body: str) -> bool:
        reads.extend([operation] if of_stops(operation, body) else [])
        return of_stops(operation, body)

    async with running(idle) as others:
        with own_cloud.proxy.throttling(throttle):
            for count in range(1, 6):
                CLOCK.move(WATCH_SECONDS)
                await until(lambda count=count: len(reads) >= count)  # type: ignore[misc]
        assert not others.done()
        await idle.store.stops.add(idle.tenant, "tenant", 1_700_000_000)
        CLOCK.move(WATCH_SECONDS)

        assert await asyncio.wait_for(others, 30) == TurnStatus.failed
