"""Holding a session while a turn runs."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from stint.domain.errors import Interrupted, StintError
from stint.store.leases import Lease, Leases

logger = logging.getLogger(__name__)

ENDING_SECONDS = 2.0
"""What is left behind a turn's deadline to store its ending: the lease lasts so long, and no longer."""


def lease_span(seconds: float, deadline: float) -> float:
    """Shorten a lease so that it does not outlive the function; `deadline` is a time of the event loop's clock."""
    return min(seconds, deadline + ENDING_SECONDS - asyncio.get_running_loop().time())


class Hold:
    """A lease that is renewed in the background at a third of its life (`seconds`), until the turn's deadline.

    It trusts its own clock, the event loop's: from `valid_until` on nothing more is written under the lease. `last`
    is where the session's history ends, as far as its holder knows.
    """

    def __init__(self, leases: Leases, lease: Lease, seconds: float, deadline: float, valid_until: float) -> None:
        self.leases = leases
        self.lease = lease
        self.seconds = seconds
        self.deadline = deadline
        self.last = lease.last
        self.valid_until = valid_until
        self.renewal = asyncio.create_task(self.renew())

    def check(self) -> None:
        """Make sure that the session is still held.

        Raises:
            Interrupted: the lease ran out, or another request has taken the session over.
        """
        if asyncio.get_running_loop().time() >= self.valid_until:
            raise Interrupted(
                "This turn lost its hold on the session: it could not renew its lease in time, and another request "
                "may have taken the session over. What was finished is stored."
            )

    async def renew(self) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < self.deadline:
            await asyncio.sleep(self.seconds / 3)
            asked, span = clock(), lease_span(self.seconds, self.deadline)
            try:
                await asyncio.to_thread(self.leases.renew, self.lease, span)
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
        """Let the session go, and note where its history ends (`last`). A failure is only logged: leases run out."""
        self.stop()
        await asyncio.gather(self.renewal, return_exceptions=True)
        try:
            await asyncio.to_thread(self.leases.release, self.lease, self.last)
        except StintError as error:
            logger.warning("The lease could not be released; it runs out by itself", extra={"error": error.message})

    @asynccontextmanager
    async def released_on_error(self) -> AsyncIterator[None]:
        """Let the session go again when what follows fails."""
        try:
            yield
        except BaseException:
            await self.release()
            raise
