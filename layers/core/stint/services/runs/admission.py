"""Starts of runs whose session or conversation may be in use by another run."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from stint.dataclasses import dataclass
from stint.domain.errors import (
    LOCKED,
    Cancelled,
    Conflict,
    DeadlineExceeded,
    Interrupted,
    NotFound,
    RateLimitExceeded,
    StintError,
    StoreUnavailable,
)
from stint.domain.ids import new_id
from stint.domain.run_outcome import ErrorInfo
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.domain.when_busy import WhenBusy
from stint.services.runs.polling_pauses import PollingPauses
from stint.store.waiting_line import ALIVE_SECONDS, WaitingLine

T = TypeVar("T")
U = TypeVar("U")

Start = Callable[[str, Callable[[str], Awaitable[None]]], Awaitable[T]]
"""Starts a run, if possible with this id. A function gets its id before anything of the run is stored."""

logger = logging.getLogger(__name__)

TAKEN = "message_taken"
TEMPORARY = (StoreUnavailable, DeadlineExceeded, Interrupted, RateLimitExceeded)
"""Errors after which a message still waits, and the worker starts it."""

REPEATED = (StoreUnavailable, Interrupted, RateLimitExceeded)
"""Errors after which its request tries again."""


@dataclass(frozen=True, slots=True)
class StartedRun:
    """The run that was started for a message by another process, or that has taken it."""

    message_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class Admission:
    """Admits the runs of one session or conversation.

    `find_running` returns the run that has it, if one has. `find_holder` also returns one that keeps it without a
    lease, and `interrupt` cancels a run. `is_lost` returns whether the run that has claimed a message died before it
    stored it. `send` sends the worker a message's task.
    """

    line: WaitingLine
    find_running: Callable[[], Awaitable[str | None]]
    find_holder: Callable[[], Awaitable[str | None]]
    interrupt: Callable[[str], Awaitable[object]]
    is_lost: Callable[[str, MessageState], Awaitable[bool]]
    send: Callable[[str], Awaitable[None]]

    async def start_now(self, start: Callable[[], Awaitable[T]], when_busy: WhenBusy) -> T | None:
        """Start a run; return None if it must wait.

        Raises:
            Conflict: another run has the session or conversation, and the request is to be rejected.
            StintError: as `start`.
        """
        if when_busy in ("enqueue", "merge") and await self.line.read():
            return None
        try:
            return await start()
        except Conflict as conflict:
            if conflict.code not in LOCKED or when_busy == "reject":
                raise
        return None

    async def accept(self, place: WaitingPlace, message: WaitingMessage) -> None:
        """Store a message at the end of the line. The worker starts it if its request does not.

        The existence of the session or conversation is checked after that, so that a later deletion finds the message.

        Raises:
            Conflict: too many messages wait already.
            NotFound: the session or conversation was deleted.
        """
        await self.send(place.message_id)
        stored = False
        try:
            await self.line.accept(place, message)
            stored = True
            await self.find_running()
        except NotFound:
            with suppress(StoreUnavailable):
                await self.line.delete(place.message_id)
            raise
        except StoreUnavailable:
            if await self.withdraw(place.message_id, stored=stored):
                raise

    async def withdraw(self, message_id: str, *, stored: bool) -> bool:
        """Remove a message that may have been `stored`, and return False if it was not removed because a run has it."""
        with suppress(StoreUnavailable):
            if await self.line.delete_unclaimed(message_id):
                return True
            state = await self.line.get(message_id)
            return not stored if state is None else state.claimed_by is None
        return True

    async def start_waiting(self, message_id: str, start: Start[T], deadline: float) -> T | StartedRun:
        """Start the run of an accepted message after those that came before it.

        Raises:
            DeadlineExceeded: it was not its turn before the deadline, a time of the event loop's clock. It still waits.
            Cancelled: the message was cancelled.
            StintError: as `start`.
        """
        async with self.kept(message_id):
            pauses = PollingPauses(deadline)
            while True:
                try:
                    started = await self.start_if_first(message_id, start)
                except REPEATED as error:
                    started = None
                    logger.warning("A message was not started; trying again", extra={"error": error.message})
                if started is not None:
                    return started
                await pauses.wait()

    async def wait_for_start(self, message_id: str, deadline: float) -> StartedRun:
        """Return the run of a message that other processes start. Raises as `start_waiting`, and NotFound."""
        pauses = PollingPauses(deadline)
        while message_id in [place.message_id for place in await self.line.read()]:
            await self.find_running()  # raises NotFound if the session or conversation was deleted
            await pauses.wait()
        return await self.find_started(message_id)

    async def start_if_first(self, message_id: str, start: Start[T]) -> T | StartedRun | None:
        """Start a run if no other message waits before its own, and no run runs."""
        places = [place.message_id for place in await self.line.read()]
        if message_id not in places:
            return await self.find_started(message_id)
        if places[0] != message_id or await self.find_running() is not None:
            return None
        state = await self.line.get(message_id)
        if state is None or state.cancelled or state.error is not None:
            await self.remove(message_id, state)  # the process that removed, cancelled or failed it died before
            return await self.find_started(message_id)
        run_ids: list[str] = []

        async def claim(run_id: str) -> None:
            await self.claim(message_id, run_id)
            run_ids.append(run_id)

        try:
            started = await start(message_id if state.run_id is None else new_id(), claim)
        except TEMPORARY:
            raise
        except StintError as error:
            if error.code in LOCKED:
                return None
            if error.code == TAKEN:
                await self.line.remove_place(message_id)
                return await self.find_started(message_id)
            await self.line.fail(message_id, ErrorInfo.of(error))
            raise
        with suppress(StoreUnavailable):  # the run goes on; the worker removes the place
            await self.line.finish(message_id, run_ids[0])
        return started

    async def remove(self, message_id: str, state: MessageState | None) -> None:
        """Remove a message that is over, or has no record, from the line."""
        await (self.line.delete(message_id) if state is None else self.line.remove_place(message_id))

    async def claim(self, message_id: str, run_id: str) -> None:
        """Claim a message for a new run, which has the session or conversation. Raises Conflict."""
        if await self.line.claim_run(message_id, run_id):
            return
        state = await self.line.get(message_id)
        lost = state is not None and await self.is_lost(message_id, state)
        if not lost or not await self.line.claim_run(message_id, run_id, state):
            raise Conflict(f"Message {message_id} was started or cancelled by another request.", code=TAKEN)

    async def find_started(self, message_id: str) -> StartedRun:
        """Return the run of a message that is not in line.

        Raises:
            Cancelled: the message was cancelled.
            StintError: its run could not be started.
        """
        state = await self.line.get(message_id)
        if state is None:
            return StartedRun(message_id, message_id)
        if state.error is not None:
            raise state.error.to_error()
        if state.cancelled or state.claimed_by is None:
            raise Cancelled("The message was cancelled before it was started.")
        return StartedRun(message_id, state.claimed_by)

    async def start_after_interrupting(
        self,
        start: Callable[[], Awaitable[T]],
        deadline: float,
        find_earlier: Callable[[], Awaitable[U | None]] | None = None,
    ) -> T | U:
        """Cancel the running run, and start one.

        `find_earlier` returns the run of an earlier attempt of the request, which is not cancelled. It is called after
        the running run was read, so that a run that starts in between is not cancelled either.
        """
        pauses = PollingPauses(deadline)
        while True:
            running = await self.find_holder()
            earlier = await find_earlier() if find_earlier is not None else None
            if earlier is not None:
                return earlier
            try:
                if running is not None:
                    with suppress(NotFound):  # the header of a run that is being started
                        await self.interrupt(running)
                return await start()
            except Conflict as conflict:
                if conflict.code not in LOCKED:
                    raise
            await pauses.wait()

    @asynccontextmanager
    async def kept(self, message_id: str) -> AsyncIterator[None]:
        """Keep a message for this request while the body runs. If it fails, the worker may start the message."""
        await self.line.renew(message_id)
        renewing = asyncio.create_task(self.keep_renewing(message_id))
        try:
            yield
        except BaseException:
            with suppress(StoreUnavailable):
                await self.line.renew(message_id, 0)
            raise
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def keep_renewing(self, message_id: str) -> None:
        while True:
            await asyncio.sleep(ALIVE_SECONDS / 3)
            try:
                await self.line.renew(message_id)
            except StoreUnavailable as error:
                logger.warning("A place in line was not renewed; trying again", extra={"error": error.message})
