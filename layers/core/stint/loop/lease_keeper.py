"""Holding a session, a conversation or a response while something runs in it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from stint.domain.errors import Interrupted, StintError

logger = logging.getLogger(__name__)

ENDING_SECONDS = 2.0
"""What is left behind a turn's deadline to store its ending: the lease lasts so long, and no longer."""


def lease_span(seconds: float, deadline: float) -> float:
    """Shorten a lease so that it does not outlive the function; `deadline` is a time of the event loop's clock."""
    return min(seconds, deadline + ENDING_SECONDS - asyncio.get_running_loop().time())


class Hold:
    """A lease that is renewed in the background at a third of its life (`seconds`), until a deadline.

    It trusts its own clock, the event loop's: from `valid_until` on nothing more is written under the lease. `prolong`
    takes seconds and raises Interrupted when the lease is lost.
    """

    def __init__(
        self,
        prolong: Callable[[float], object],
        give_back: Callable[[], None],
        seconds: float,
        deadline: float,
        valid_until: float,
    ) -> None:
        self.prolong = prolong
        self.give_back = give_back
        self.seconds = seconds
        self.deadline = deadline
        self.valid_until = valid_until
        self.renewal = asyncio.create_task(self.renew())

    def check(self) -> None:
        """Make sure that the lease is still held.

        Raises:
            Interrupted: it ran out, or another request has taken it over.
        """
        if asyncio.get_running_loop().time() >= self.valid_until:
            raise Interrupted(
                "This run lost its hold on what it works on: it could not renew its lease in time, and another request "
                "may have taken over. What was finished is stored."
            )

    async def renew(self) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < self.deadline:
            await asyncio.sleep(self.seconds / 3)
            asked, span = clock(), lease_span(self.seconds, self.deadline)
            try:
                await asyncio.to_thread(self.prolong, span)
            except Interrupted:
                self.valid_until = asked
                return
            except StintError as error:
                logger.warning("The lease could not be renewed; trying again", extra={"error": error.message})
            else:
                self.valid_until = asked + span

    def stop(self) -> None:
        """Renew no more: a lease that is not released runs out."""
        self.renewal.cancel()

    async def release(self) -> None:
        """Let go: from here on nothing more is written. A failure is only logged: leases run out."""
        await self.end_with(self.give_back)

    async def let_lapse(self) -> None:
        """Let the lease run out now, without giving it back. A failure is only logged: leases run out."""
        await self.end_with(lambda: self.prolong(0))

    async def end_with(self, last: Callable[[], object]) -> None:
        self.stop()
        await asyncio.gather(self.renewal, return_exceptions=True)
        self.valid_until = asyncio.get_running_loop().time()
        try:
            await asyncio.to_thread(last)
        except StintError as error:
            logger.warning("The lease could not be released; it runs out by itself", extra={"error": error.message})

    @asynccontextmanager
    async def released_on_error(self) -> AsyncIterator[None]:
        """Let go again when what follows fails."""
        try:
            yield
        except BaseException:
            await self.release()
            raise
