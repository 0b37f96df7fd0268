"""The pauses of a reader that polls the table: short after news, and longer while there is none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from stint.domain.errors import DeadlineExceeded
from stint.loop.model_call import TIME_IS_OVER

SHORTEST_SECONDS = 0.25
LONGEST_SECONDS = 2.0
GROWTH = 1.5


class PollingPauses:
    """Pauses between reads, until a deadline, a time of the event loop's clock."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.seconds = SHORTEST_SECONDS

    def reset(self) -> None:
        """Make the next pause short, because there was news."""
        self.seconds = SHORTEST_SECONDS

    async def wait(self) -> None:
        """Wait for the next read. Raises DeadlineExceeded if the deadline would pass first."""
        if asyncio.get_running_loop().time() + self.seconds >= self.deadline:
            raise DeadlineExceeded(TIME_IS_OVER)
        await asyncio.sleep(self.seconds)
        self.seconds = min(self.seconds * GROWTH, LONGEST_SECONDS)


async def poll(seconds: float) -> AsyncIterator[None]:
    """Yield after each pause of SHORTEST_SECONDS, until `seconds` have passed."""
    pauses = PollingPauses(asyncio.get_running_loop().time() + seconds)
    with suppress(DeadlineExceeded):
        while True:
            await pauses.wait()
            pauses.reset()
            yield
