"""Starts of runs whose session or conversation may be in use by another run."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from stint.domain.errors import Conflict, NotFound, StoreUnavailable
from stint.domain.when_busy import WhenBusy
from stint.services.polling_pauses import PollingPauses
from stint.store.waiting_line import ALIVE_SECONDS, WaitingLine

T = TypeVar("T")

logger = logging.getLogger(__name__)

LOCKED = ("session_locked", "conversation_locked")


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits the runs of one session or conversation.

    `is_free` returns whether no run has it, and `interrupt` cancels the run that has it.
    """

    line: WaitingLine
    is_free: Callable[[], Awaitable[bool]]
    interrupt: Callable[[], Awaitable[object]]

    async def start_now(self, start: Callable[[], Awaitable[T]], when_busy: WhenBusy) -> T | None:
        """Start a run; return None if it must wait.

        Raises:
            Conflict: another run has the session or conversation, and the request is to be rejected.
            StintError: as `start`.
        """
        if when_busy == "enqueue" and await self.line.read():
            return None
        try:
            return await start()
        except Conflict as conflict:
            if conflict.code not in LOCKED or when_busy == "reject":
                raise
        return None

    async def start_later(self, start: Callable[[], Awaitable[T]], when_busy: WhenBusy, deadline: float) -> T:
        """Start a run after those that came before it, or after interrupting the running one.

        Raises:
            DeadlineExceeded: it was not its turn before the deadline, a time of the event loop's clock.
            Conflict: too many requests wait already.
            StintError: as `start`.
        """
        if when_busy == "interrupt":
            return await self.start_after_interrupting(start, deadline)
        async with self.waiting() as place:
            pauses = PollingPauses(deadline)
            while True:
                started = await self.start_if_first(start, place)
                if started is not None:
                    return started
                await pauses.wait()

    async def start_if_first(self, start: Callable[[], Awaitable[T]], place: str) -> T | None:
        """Start a run if no other one waits before it and none runs."""
        before = [each for each in await self.line.read() if each < place]
        if before or not await self.is_free():
            return None
        try:
            return await start()
        except Conflict as conflict:
            if conflict.code not in LOCKED:
                raise
        return None

    async def start_after_interrupting(self, start: Callable[[], Awaitable[T]], deadline: float) -> T:
        """Cancel the running run, and start one."""
        pauses = PollingPauses(deadline)
        while True:
            try:
                await self.interrupt()
                return await start()
            except NotFound as error:  # the header of a run that is being started
                if await self.is_free():
                    raise error from None
            except Conflict as conflict:
                if conflict.code not in LOCKED:
                    raise
            await pauses.wait()

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[str]:
        """Wait in line while the body runs."""
        place = await self.line.join()
        renewing = asyncio.create_task(self.keep_place(place))
        try:
            yield place
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            try:
                await self.line.leave(place)
            except StoreUnavailable as error:
                logger.warning("A place in line was not given up; it lapses", extra={"error": error.message})

    async def keep_place(self, place: str) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS / 3)
            try:
                await self.line.renew(place)
            except StoreUnavailable as error:
                logger.warning("A place in line was not renewed; trying again", extra={"error": error.message})
