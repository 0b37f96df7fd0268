"""Heartbeats, which keep a silent connection open."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def with_heartbeats(source: AsyncIterator[T], beat: T, seconds: float) -> AsyncIterator[T]:
    """Yield items, and `beat` after every `seconds` of silence.

    API Gateway cuts a stream after 5 minutes of silence (30 seconds at an edge-optimized endpoint), proxies sooner:
    https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode.html
    """

    async def read() -> T:
        return await anext(source)

    pending = asyncio.create_task(read())
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=seconds)
            if not done:
                yield beat
                continue
            try:
                item = pending.result()
            except StopAsyncIteration:
                return
            yield item
            pending = asyncio.create_task(read())
    finally:
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
