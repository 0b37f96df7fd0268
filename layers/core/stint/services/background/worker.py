"""Running responses in the background: the worker's part."""

import asyncio
import logging
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial

from stint.domain.errors import Conflict, DeadlineExceeded, Interrupted, NotFound, StintError, StoreUnavailable
from stint.domain.openai.stored_responses import StoredResponse
from stint.loop.lease_keeper import Hold
from stint.loop.next_step import ending_of
from stint.services.background.event_writer import StreamWriter
from stint.services.background.response_lease import BackgroundHold, take_up
from stint.services.background.resume import Continuing, first_move
from stint.services.responses.recovery import (
    ATTEMPTS_EXHAUSTED,
    EXHAUSTION,
    EndingOf,
    Lives,
    cancelled,
    exhausted,
    failed,
    was_given_up,
)
from stint.services.responses.replay import Told, catch_up, read_told
from stint.services.responses.response_run import ResponseRun, narrate
from stint.services.responses.streamed_items import StreamedItems
from stint.store.background import MAX_ATTEMPTS, BackgroundLease
from stint.store.response_store import ResponseStore

logger = logging.getLogger(__name__)

TIME_IS_OVER = (
    "The worker's time was over before the response ended. What was finished is stored; ask for less in one response, "
    "or raise WorkerTimeoutSeconds in the template."
)


class GivenUp(StintError):
    """A response was taken up as often as it may be."""

    code = ATTEMPTS_EXHAUSTED


@dataclass(frozen=True, slots=True)
class BackgroundRuns:
    """Runs the stored responses of a tenant, each under a lease of `lease_seconds` that is renewed."""

    tenant: str
    store: ResponseStore
    continuing: Continuing
    lives: Lives
    lease_seconds: float

    async def work(self, response_id: str, deadline: float, *, last: bool = False) -> StoredResponse | None:
        """Run a response from where it stands to its end, and give it; one that has ended is given as it is.

        None: it was deleted, or another worker runs it. `deadline` is a time of the event loop's clock. `last` tells
        that nobody tries again when this attempt fails.

        Raises:
            GivenUp: it failed for good, because no attempt ended it.
            Exception: the attempt failed, and another one may not.
        """
        try:
            return await self.try_once(response_id, deadline)
        except GivenUp:
            raise
        except Exception as error:
            logger.warning("An attempt to run the response failed", extra={"error": type(error).__name__})
            if last:
                with suppress(StintError):
                    await self.end(response_id, exhausted)
            raise

    async def try_once(self, response_id: str, deadline: float) -> StoredResponse | None:
        stored = await self.read(response_id)
        if stored is None or stored.ending is not None:
            return unless_given_up(stored)
        try:
            hold = await take_up(self.store.background, self.tenant, response_id, self.lease_seconds, deadline)
        except NotFound:
            return None
        except Conflict as conflict:
            ending = cancelled if conflict.code == "response_cancelled" else exhausted
            return unless_given_up(await self.end(response_id, ending))
        if hold is None:
            return None
        try:
            return await self.attempt(hold, stored if hold.lease.attempts == 1 else None)
        except Exception:
            await self.give_back(hold)
            raise

    async def read(self, response_id: str) -> StoredResponse | None:
        with suppress(NotFound):
            return await asyncio.to_thread(self.store.responses.get, self.tenant, response_id)
        return None

    async def end(self, response_id: str, ending: EndingOf) -> StoredResponse | None:
        stored = await self.read(response_id)
        with suppress(NotFound):
            return stored and await self.lives.end(stored, ending)
        return None

    async def attempt(self, hold: BackgroundHold, stored: StoredResponse | None) -> StoredResponse | None:
        """Run a response until it ends, or is to stop: cancelled, deleted or taken over by another worker.

        `stored` is how it stood before, where nobody else can have run it since.
        """
        driving, watching = asyncio.create_task(self.drive(hold, stored)), asyncio.create_task(hold.watch())
        try:
            await asyncio.wait({driving, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            driving.cancel()
            watching.cancel()
            await asyncio.gather(driving, watching, return_exceptions=True)
            hold.stop()
        if driving.cancelled() or isinstance(driving.exception(), Interrupted | NotFound):
            return await self.stopped(hold.lease)
        return driving.result()

    async def stopped(self, lease: BackgroundLease) -> StoredResponse | None:
        """Tell what became of a response that its worker could not end; None when another one runs it now.

        Raises:
            Interrupted: nobody has it; the worker could not renew its lease in time.
        """
        stored = await self.read(lease.response_id)
        if stored is None or stored.ending is not None:
            return unless_given_up(stored)
        state = await asyncio.to_thread(self.store.background.look, lease.tenant, lease.response_id)
        if state.cancelled_at is not None:
            return await self.end(lease.response_id, cancelled)
        if state.lease_id == lease.lease_id:
            raise Interrupted("The worker could not renew its lease of the response in time.")
        return None

    async def drive(self, hold: BackgroundHold, found: StoredResponse | None) -> StoredResponse:
        """Run a response to its end.

        Raises:
            Interrupted: somebody else has ended it, or runs it.
            StoreUnavailable: the store failed.
        """
        response_id = hold.lease.response_id
        if found is None:
            found = await asyncio.to_thread(self.store.responses.get, self.tenant, response_id)
        stored = found
        if stored.ending is not None:
            return stored
        stored.taken_up = True
        try:
            response = await self.continuing.put_together(stored, hold)
        except StintError as error:
            return await self.fail(stored, hold, error)
        try:
            return await self.tell(response, stored, hold)
        finally:
            if response.log.response.ending is None:
                await response.log.let_lapse()

    async def tell(self, response: ResponseRun, stored: StoredResponse, hold: Hold) -> StoredResponse:
        """Run what was put together, and store what it tells."""
        told = Told()
        if stored.header.streamed:
            told = read_told(await self.lives.read_stream(response.response_id))
        background = self.store.background if stored.header.streamed else None
        writer = StreamWriter(background, self.tenant, response.response_id, told.events)
        try:
            async with writer.flushing():
                self.catch_up(response, stored, told, writer)
                await self.go_on(response, writer)
        except StintError as error:
            ended = await self.fail(response.log.response, hold, error, response.stream.items.streamed)
            response.log.response = ended
            await response.log.release()
        return response.log.response

    def catch_up(self, response: ResponseRun, stored: StoredResponse, told: Told, writer: StreamWriter) -> None:
        """Tell what the stream lacks, and go on behind it: what broke off keeps its place."""
        stream, output = response.stream, response.stream.output
        stream.items.streamed = told.items
        writer.add(catch_up(stream, stored, told))
        response.log.skipped = told.items.index - output.place
        output.skipped += response.log.skipped

    async def go_on(self, response: ResponseRun, writer: StreamWriter) -> None:
        log = response.log
        first = first_move(response.run, log.response.records)
        if first is not None and first.then is not None and not first.calls:
            await log.append(None, ending_of(response.run, first.then))
        else:
            async with aclosing(narrate(response, first)) as events:
                async for event in events:
                    writer.add([event])
        writer.add(response.stream.end(log.response))

    async def fail(
        self, stored: StoredResponse, hold: Hold, error: StintError, streamed: StreamedItems | None = None
    ) -> StoredResponse:
        """End a response as failed, unless another attempt may succeed; then the error is raised.

        `streamed` are the items that this attempt has shown, once it has begun.
        """
        if isinstance(error, Interrupted | StoreUnavailable):
            raise error
        if isinstance(error, DeadlineExceeded):
            error = DeadlineExceeded(TIME_IS_OVER)
        hold.check()
        extra = {"response_id": stored.header.response_id, "error_code": error.code, "error": error.message}
        logger.warning("The response failed", extra=extra)
        return await self.lives.end(stored, partial(failed, error), streamed)

    async def give_back(self, hold: BackgroundHold) -> None:
        """Let another attempt follow at once, or end a response whose last one failed."""
        with suppress(StintError):
            if hold.lease.attempts >= MAX_ATTEMPTS:
                await self.end(hold.lease.response_id, exhausted)
            else:
                await hold.let_lapse()


def unless_given_up(stored: StoredResponse | None) -> StoredResponse | None:
    """Give a response that has ended; raise GivenUp for one that no attempt ended, so that its message is kept."""
    if stored is not None and was_given_up(stored):
        raise GivenUp(EXHAUSTION)
    return stored
