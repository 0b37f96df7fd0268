"""Renewal of a lease while something runs under it.

A run writes only while it holds its lease, and it must notice the loss itself: another process takes over a lapsed
lease without asking. So the keeper has two times of the event loop's clock:

    valid_until    after it nothing is written. It is counted from the moment before a renewal was sent. A slow or lost
                   answer thus makes it too early, never too late
    deadline       no lease lasts more than ENDING_SECONDS longer. A function that is killed at its time limit leaves a
                   lease that lapses soon

The lease is renewed at a third of its life, so that a renewal can fail and be repeated before the lease lapses.

    a renewal      succeeds    valid_until moves
                   fails       it stays, and the next renewal may succeed
                   is refused  valid_until is the moment of the question: the run ends at its next `check`

`check` is only the first of two fences. A process can be suspended between it and the write; the log's keys, each of
which is written once, stop it then (see `stint.store.log`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from stint.domain.errors import Interrupted, StintError

logger = logging.getLogger(__name__)

ENDING_SECONDS = 2.0
"""Seconds after a turn's deadline for storing its ending. The lease ends after them."""

NOT_RENEWED = "This run lost its lease, because it could not renew it in time. Another request may have taken over."
"""The reason why a run has lost its lease, unless a renewal was refused."""


class Renewable(Protocol):
    """A lease."""

    async def renew(self, seconds: float) -> object:
        """Extend the lease to `seconds` from now. Raises Interrupted if it is lost."""
        ...

    async def release(self) -> None:
        """Release the lease; do nothing if it is lost."""
        ...


L_co = TypeVar("L_co", bound=Renewable, covariant=True)


def lease_span(seconds: float, deadline: float) -> float:
    """Return the seconds of a lease that ends with the function. `deadline` is a time of the event loop's clock."""
    return min(seconds, deadline + ENDING_SECONDS - asyncio.get_running_loop().time())


class LeaseKeeper(Generic[L_co]):
    """Renews a lease in the background, at a third of its life (`seconds`), until a deadline.

    It uses the event loop's clock. After `valid_until` nothing is written under the lease.
    """

    def __init__(self, lease: L_co, seconds: float, deadline: float, valid_until: float) -> None:
        self.lease = lease
        self.seconds = seconds
        self.deadline = deadline
        self.valid_until = valid_until
        self.reason = NOT_RENEWED
        self.renewal: asyncio.Task[None] | None = None
        # A timer until then, because most runs end before, and a task costs them more.
        self.timer = asyncio.get_running_loop().call_later(seconds / 3, self.begin_renewing)

    def check(self) -> None:
        """Check that the lease is still valid.

        Raises:
            Interrupted: it lapsed, or another request has taken it over.
        """
        if asyncio.get_running_loop().time() >= self.valid_until:
            raise Interrupted(f"{self.reason} Finished steps are stored.")

    def begin_renewing(self) -> None:
        if asyncio.get_running_loop().time() >= self.deadline:
            return  # a lease is not renewed after it
        self.renewal = asyncio.create_task(self.keep_renewing())

    async def keep_renewing(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            asked, span = clock(), lease_span(self.seconds, self.deadline)
            try:
                await self.lease.renew(span)
            except Interrupted as lost:
                self.valid_until, self.reason = asked, f"This run lost its lease: {lost.message}"
                return
            except StintError as error:
                logger.warning("The lease could not be renewed; trying again", extra={"error": error.message})
            else:
                self.valid_until = asked + span
            if clock() >= self.deadline:
                return
            await asyncio.sleep(self.seconds / 3)

    def stop(self) -> None:
        """Stop the renewal. A lease that is not released lapses."""
        self.timer.cancel()
        if self.renewal is not None:
            self.renewal.cancel()

    async def wait_until_stopped(self) -> None:
        """Stop the renewal, and wait until none is being sent."""
        self.stop()
        if self.renewal is not None:
            await asyncio.gather(self.renewal, return_exceptions=True)

    async def release(self) -> None:
        """Release the lease, after which nothing is written. A failure is only logged, because leases lapse."""
        await self.stop_with(self.lease.release)

    async def lapse(self) -> None:
        """Make the lease lapse now, without releasing it. A failure is only logged, because leases lapse anyway."""
        await self.stop_with(lambda: self.lease.renew(0))

    async def stop_with(self, last: Callable[[], Awaitable[object]]) -> None:
        # The last write must not overtake a renewal, which would extend a lapsed lease again.
        await self.wait_until_stopped()
        # Before the release is sent: another request may have the lease before its answer arrives.
        self.valid_until = asyncio.get_running_loop().time()
        try:
            await last()
        except StintError as error:
            logger.warning("The lease could not be released; it will expire", extra={"error": error.message})

    @asynccontextmanager
    async def released_on_error(self) -> AsyncIterator[None]:
        """Release the lease if the body fails."""
        try:
            yield
        # Cancellation included: a lease that is kept would block the session until it lapses.
        except BaseException:
            await self.release()
            raise
