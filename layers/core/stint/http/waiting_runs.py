"""Responses of runs that wait for their session or conversation before they start."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Generic, TypeVar

from starlette.requests import Request

from stint.http.deadline import deadline_of

T = TypeVar("T")

SILENT_SECONDS = 240.0
"""Seconds for which a request without a stream waits. API Gateway closes a connection that is silent for 300 s."""


def wait_until(request: Request) -> float:
    """Return the time of the event loop's clock until which a request without a stream waits for its run to start."""
    return min(deadline_of(request), asyncio.get_running_loop().time() + SILENT_SECONDS)


class End:
    """The end of a queue."""


END: Final = End()


class TaskReader(Generic[T]):
    """Reads events in one task, so that the start of a run and all its events share a context."""

    def __init__(self, events: AsyncGenerator[T, None]) -> None:
        self.events = events
        self.queue: asyncio.Queue[T | End] = asyncio.Queue()

    async def read(self) -> AsyncGenerator[T, None]:
        """Yield the events. Raises as they do."""
        reading = asyncio.create_task(self.fill())
        try:
            while not isinstance(event := await self.queue.get(), End):
                yield event
            await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def fill(self) -> None:
        try:
            async with aclosing(self.events):
                async for event in self.events:
                    self.queue.put_nowait(event)
        finally:
            self.queue.put_nowait(END)
