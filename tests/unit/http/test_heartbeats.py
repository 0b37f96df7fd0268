import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.clock import CLOCK

from stint.http.heartbeats import with_heartbeats

BEAT = 30.0


async def numbers(*pauses: float) -> AsyncIterator[int]:
    """Yield a number after each pause, in which time passes at once."""
    for number, pause in enumerate(pauses):
        CLOCK.move(pause)
        await asyncio.sleep(0)
        yield number


async def test_items_pass_in_order_and_silence_is_filled() -> None:
    gate = asyncio.Event()

    async def silent() -> AsyncIterator[int]:
        yield 0
        await gate.wait()
        yield 1

    passed = with_heartbeats(silent(), -1, BEAT)
    seen = [await anext(passed)]
    for _ in range(2):
        beat = asyncio.ensure_future(anext(passed))
        await asyncio.sleep(0)
        CLOCK.move(BEAT)
        seen.append(await beat)
    gate.set()

    assert seen + [item async for item in passed] == [0, -1, -1, 1]


async def test_a_source_that_is_not_silent_for_so_long_gets_no_beat() -> None:
    passed = [item async for item in with_heartbeats(numbers(*[BEAT * 0.9] * 5), -1, BEAT)]

    assert passed == [0, 1, 2, 3, 4]


async def test_an_empty_source_ends_at_once() -> None:
    assert [item async for item in with_heartbeats(numbers(), -1, BEAT)] == []


async def test_a_failure_of_the_source_is_raised() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("broken")

    passed = with_heartbeats(failing(), -1, BEAT)

    assert await anext(passed) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(passed)


async def test_a_reader_that_leaves_ends_the_source() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def read() -> None:
        async for _ in with_heartbeats(endless(), -1, BEAT):
            pass

    reader = asyncio.create_task(read())
    await begun.wait()
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)

    assert ended.is_set()
