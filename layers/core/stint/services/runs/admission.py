"""Starts of runs whose session or conversation may be in use by another run.

A request that must wait is stored as a message with a place in line, so that it is run even if its process dies. Its
request starts it while it is alive, and the worker does so otherwise. Either may die at any point, so the state of a
message is what its record and its place show together:

| record              | place     | what it means                           | what the next process does          |
|---------------------|-----------|-----------------------------------------|-------------------------------------|
| open                | alive     | its request waits                       | nothing: the request starts it      |
| open                | not alive | its request died                        | the worker starts it if it is first |
| open                | none      | its request died before it was accepted | the worker deletes it               |
| claimed             | any       | a run has it, or died without it        | claims it again if the run is lost  |
| cancelled or failed | in line   | the process that ended it died next     | removes the place                   |
| none                | in line   | the process that removed it died        | removes the place                   |
| none                | none      | it is stored as a run, or withdrawn     | reads the run                       |

A message is claimed with one conditional write, before anything of its run is stored. So of two processes that start
it only one stores a run, and a process that dies after its claim leaves a message whose run does not exist.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Generic, Protocol, TypeVar

from stint.caller import NO_ATTEMPT, RequestAttempt, find_end_user, find_principal
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
from stint.domain.schema import now
from stint.domain.waiting_messages import MessageState, WaitingMessage, WaitingPlace
from stint.domain.when_busy import WhenBusy
from stint.services.runs.polling_pauses import PollingPauses
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.senders import name_sender
from stint.store.waiting_line import ALIVE_SECONDS, WaitingLine

T = TypeVar("T")
U = TypeVar("U")
Q = TypeVar("Q")
Q_contra = TypeVar("Q_contra", contravariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Claim = Callable[[str], Awaitable[None]]
"""Claims a message for the run with this id. It is called before anything of the run is stored."""

Start = Callable[[str, Claim], Awaitable[T]]
"""Starts the run of a message, if possible with this id."""

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


class LineKind(Protocol[Q_contra, R_co]):
    """Does what differs between the turns of a session and the responses of a conversation. `Q` is their request."""

    async def prepare(self, request: Q_contra, attempt: RequestAttempt, /) -> tuple[WaitingPlace, WaitingMessage]:
        """Check a request that must wait, and return what is stored of it. Raises StintError."""
        ...

    async def start(
        self, request: Q_contra, context: RequestContext, message_id: str, run_id: str, claim: Claim, /
    ) -> R_co:
        """Start the run of a message, if possible with this id. Raises StintError."""
        ...

    async def find_running(self) -> str | None:
        """Return the run that has the session or conversation, if one has. Raises NotFound if it was deleted."""
        ...

    async def find_holder(self) -> str | None:
        """Return the run that has it, or that keeps it without a lease."""
        ...

    async def interrupt(self, run_id: str, /) -> object:
        """Cancel a run. Raises NotFound."""
        ...

    async def is_lost(self, message_id: str, state: MessageState, /) -> bool:
        """Return whether the run that has claimed a message died before it stored it."""
        ...

    async def send_task(self, message_id: str, /) -> None:
        """Send the worker a message's task."""
        ...


@dataclass(frozen=True, slots=True)
class Admission(Generic[Q, R]):
    """Admits the runs of one session or conversation. The worker starts messages whose request died."""

    line: WaitingLine
    kind: LineKind[Q, R]

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

    async def accept(self, request: Q, attempt: RequestAttempt = NO_ATTEMPT) -> str:
        """Store a request that must wait at the end of the line, and return the id of its message.

        Raises:
            Conflict: too many messages wait already.
            NotFound: the session or conversation was deleted.
            StintError: as `LineKind.prepare`.
        """
        place, message = await self.kind.prepare(request, attempt)
        # The task before the message: a request that dies in between leaves a task without a message, which does
        # nothing. A message without a task would wait until it expires, and block those after it.
        await self.kind.send_task(place.message_id)
        stored = False
        try:
            await self.line.accept(place, message)
            stored = True
            # After the message: if the session or conversation is deleted later than this, its deletion finds it.
            await self.kind.find_running()
        except NotFound:
            with suppress(StoreUnavailable):
                await self.line.delete(place.message_id)
            raise
        except StoreUnavailable:
            if await self.withdraw(place.message_id, stored=stored):
                raise
        return place.message_id

    async def withdraw(self, message_id: str, *, stored: bool) -> bool:
        """Remove a message that may have been `stored`, and return False if it was not removed because a run has it."""
        with suppress(StoreUnavailable):
            if await self.line.delete_unclaimed(message_id):
                return True
            state = await self.line.get(message_id)
            return not stored if state is None else state.claimed_by is None
        return True

    async def start(
        self, message_id: str, request: Q, context: RequestContext, until: float | None = None
    ) -> R | StartedRun:
        """Start the run of an accepted message after those that came before it.

        `until` is a time of the event loop's clock, by default the deadline of the request.

        Raises:
            DeadlineExceeded: it was not its turn before that. It still waits.
            Cancelled: the message was cancelled.
            StintError: as `LineKind.start`.
        """
        start = partial(self.kind.start, request, context, message_id)
        async with self.kept(message_id):
            pauses = PollingPauses(context.deadline if until is None else until)
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
        """Return the run of a message that other processes start. Raises as `start`, and NotFound."""
        pauses = PollingPauses(deadline)
        while message_id in [place.message_id for place in await self.line.read()]:
            await self.kind.find_running()  # raises NotFound if the session or conversation was deleted
            await pauses.wait()
        return await self.find_started(message_id)

    async def start_if_first(self, message_id: str, start: Start[R]) -> R | StartedRun | None:
        """Start a run if no other message waits before its own, and no run runs."""
        places = [place.message_id for place in await self.line.read()]
        if message_id not in places:
            return await self.find_started(message_id)
        if places[0] != message_id or await self.kind.find_running() is not None:
            return None
        state = await self.line.get(message_id)
        if state is None or state.cancelled or state.error is not None:
            await self.remove(message_id, state)  # the process that removed, cancelled or failed it died before
            return await self.find_started(message_id)
        run_ids: list[str] = []  # the run may have another id than the message: one that is newer than the last run

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
        lost = state is not None and await self.kind.is_lost(message_id, state)
        if not lost or not await self.line.claim_run(message_id, run_id, state):
            raise Conflict(f"Message {message_id} was started or cancelled by another request.", code=TAKEN)

    async def find_accepted(self, attempt: RequestAttempt) -> str | None:
        """Return the message that an earlier attempt of a request stored; with a key, also one that is over."""
        if not attempt.repeated:
            for place in await self.line.read():
                same = place.fingerprint == attempt.fingerprint
                if same and await self.line.note_retry(place.message_id, attempt.retry_count):
                    return place.message_id
            return None
        state = await self.line.get(attempt.object_id)
        if state is None or state.is_over:
            return None if state is None else attempt.object_id
        if attempt.object_id not in {place.message_id for place in await self.line.read()}:
            # It was claimed since it was read, and has left the line, or its request died before its place was stored.
            state = await self.line.get(attempt.object_id)
            return attempt.object_id if state is not None and state.is_over else None
        return attempt.object_id

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
            running = await self.kind.find_holder()  # before the earlier attempt's: see above
            earlier = await find_earlier() if find_earlier is not None else None
            if earlier is not None:
                return earlier
            try:
                if running is not None:
                    with suppress(NotFound):  # the header of a run that is being started
                        await self.kind.interrupt(running)
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


def place_of(message_id: str, attempt: RequestAttempt, *, mergeable: bool, alive: bool = True) -> WaitingPlace:
    """Return the place of a message. If it is `mergeable`, the running run of the same caller may take it.

    `alive`: its request waits for it.
    """
    sender = name_sender() if mergeable else ""
    return WaitingPlace(message_id, alive, sender, attempt.fingerprint, retry_count=attempt.retry_count)


def new_message(body: str, expires_at: int | None = None, *, lenient: bool | None = None) -> WaitingMessage:
    """Return a message of the current caller. The fields are those of `WaitingMessage`."""
    caller = find_principal()
    return WaitingMessage(
        body=body,
        accepted_at=now(),
        creator=caller.to_context() if caller is not None else None,
        end_user=find_end_user(),
        expires_at=expires_at,
        lenient=lenient,
    )
