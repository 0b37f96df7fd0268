import asyncio
from collections.abc import AsyncIterator

import pytest

from stint.http.heartbeats import with_heartbeats


async def numbers(*pauses: float) -> AsyncIterator[int]:
    for number, pause in enumerate(pauses):
        await asyncio.sleep(pause)
        yield number


async def test_items_pass_in_order_and_silence_is_filled() -> None:
    passed = [item async for item in with_heartbeats(numbers(0, 0.25, 0), -1, 0.1)]

    assert passed in ([0, *[-1] * beats, 1, 2] for beats in (1, 2, 3))


async def test_an_empty_source_ends_at_once() -> None:
    assert [item async for item in with_heartbeats(numbers(), -1, 0.05)] == []


async def test_a_failure_of_the_source_is_raised() -> None:
    async def failing() -> AsyncIterator[int]:
        yield 1
        raise ValueError("broken")

    passed = with_heartbeats(failing(), -1, 0.05)

    assert await anext(passed) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(passed)


async def test_a_reader_that_leaves_ends_the_source() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def read() -> None:
        async for _ in with_heartbeats(endless(), -1, 0.01):
            pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)

    assert ended.is_set()
