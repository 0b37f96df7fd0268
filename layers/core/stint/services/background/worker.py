"""The worker's path of a background response, in five steps: load, acquire, rebuild, run, finish.

The queue delivers a task at least once, and a worker may die at any point, so each delivery begins with what is stored:

| the response when a task arrives   | what this worker does                                   |
|------------------------------------|---------------------------------------------------------|
| was deleted                        | nothing                                                 |
| has ended                          | publishes its completion event again                    |
| is queued                          | runs it from its first step                             |
| has a worker that renews the lease | nothing                                                 |
| has a lease that lapsed            | freezes its stream, and runs it from its last record on |
| was cancelled                      | ends it as cancelled                                    |
| has had all its attempts           | ends it as failed, and raises for the dead-letter queue |

The completion event is published last and may be published twice, because nothing is stored after it. An attempt that
fails for a reason that may pass raises, and the queue delivers the task again.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial

from stint.caller import acting_as
from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, DeadlineExceeded, Interrupted, NotFound, StintError, StoreUnavailable
from stint.domain.notifications.completion_events import ResponseFinished
from stint.domain.openai.stored_responses import StoredResponse
from stint.domain.partial_steps import PartialStep
from stint.services.background.event_writer import StreamWriter
from stint.services.background.notifications import CompletionEvents
from stint.services.background.response_lease import ResponseKeeper, keep_response, wait_for_stop
from stint.services.background.resume import Resumer, continue_stream, metered_failure, resume
from stint.services.responses.recovery import (
    ATTEMPTS_EXHAUSTED,
    EXHAUSTION,
    EndingOf,
    Recovery,
    cancelled,
    exhausted,
    has_exhausted_attempts,
)
from stint.services.responses.replay import ReplayPosition, read_position
from stint.services.responses.response_run import ResponseRun
from stint.store.response_leases import MAX_ATTEMPTS, ResponseLease
from stint.store.store import Store

logger = logging.getLogger(__name__)

TIME_IS_OVER = (
    "The time limit of the worker was reached before the response ended. Finished steps are stored. Request less, "
    "or raise WorkerTimeoutSeconds in the template."
)


class AttemptsExhausted(StintError):
    """All attempts of a response failed."""

    code = ATTEMPTS_EXHAUSTED


@dataclass(frozen=True, slots=True)
class Worker:
    """Runs the stored responses of a tenant, each under a renewed lease of `lease_seconds`."""

    tenant: str
    store: Store
    resumer: Resumer
    recovery: Recovery
    completion_events: CompletionEvents
    lease_seconds: float

    async def handle(
        self, response_id: str, deadline: float, *, last: bool = False, event_id: str | None = None
    ) -> StoredResponse | None:
        """Run a response from its current state to its end, publish its completion event, and return it.

        The event of a response that has ended already is published again, because the process that ended it may have
        died before it did. Return None if the response was deleted, or another worker runs it. `deadline` is a time of
        the event loop's clock. `last`: no attempt follows if this one fails.

        Raises:
            AttemptsExhausted: no attempt ended the response. Its message is kept for the dead-letter queue.
            Exception: the attempt or the completion event failed, and another attempt may succeed.
        """
        runs = False
        try:
            stored = await self.load(response_id)
            if runs := stored is not None and stored.ending is None:
                with acting_as(stored.creator):  # whoever has queued it
                    stored = await self.attempt(stored, deadline)
            refuse_exhausted(stored)
        except Exception as error:
            if not isinstance(error, AttemptsExhausted):
                await self.note_failure(response_id, error, last=last)
            await self.finish(await self.load(response_id), event_id)
            raise
        finished = await self.finish(stored, event_id)
        if runs and finished is not None:
            await self.resumer.responses.send_trace(finished, deadline)
        return finished

    async def load(self, response_id: str) -> StoredResponse | None:
        """Step 1: read the response; None if it was deleted."""
        with suppress(NotFound):
            return await self.store.responses.get(self.tenant, response_id)
        return None

    async def attempt(self, stored: StoredResponse, deadline: float) -> StoredResponse | None:
        """Run a response under its lease; None if it was deleted, or another worker runs it."""
        response_id = stored.header.response_id
        self.resumer.responses.meters.begin()
        try:
            keeper = await self.acquire(response_id, deadline)
        except NotFound:
            return None
        except Conflict as conflict:
            outcome = cancelled if conflict.code == "response_cancelled" else exhausted
            return await self.end_response(response_id, outcome)
        if keeper is None:
            return None
        try:
            return await self.run_until_stopped(keeper, stored)
        except Exception:
            await self.release(keeper)
            raise
        finally:
            await self.resumer.responses.meters.end()
            await self.resumer.responses.meters.stops.settle()

    async def acquire(self, response_id: str, deadline: float) -> ResponseKeeper | None:
        """Step 2: acquire the lease of the response; None if another worker renews its own.

        Raises:
            NotFound: the response was deleted.
            Conflict: it was cancelled, or no attempt is left.
            Interrupted: there was no time to find out whether the other worker is alive.
        """
        return await keep_response(self.store.response_leases, self.tenant, response_id, self.lease_seconds, deadline)

    async def run_until_stopped(self, keeper: ResponseKeeper, stored: StoredResponse) -> StoredResponse | None:
        """Run a response until it ends, is cancelled or deleted, or another worker takes it over."""
        running = asyncio.create_task(self.run_leased(keeper, stored))
        watching = asyncio.create_task(wait_for_stop(self.store.response_leases, keeper.lease))
        try:
            await asyncio.wait({running, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()
            watching.cancel()
            await asyncio.gather(running, watching, return_exceptions=True)
            keeper.stop()
        if running.cancelled() or isinstance(running.exception(), Interrupted | NotFound):
            return await self.load_stopped(keeper.lease)
        return running.result()

    async def run_leased(self, keeper: ResponseKeeper, stored: StoredResponse) -> StoredResponse:
        """Rebuild and run a response to its end.

        Raises:
            Interrupted: another process has ended it, or runs it.
            StoreUnavailable: the store failed.
        """
        if keeper.lease.attempts > 1:  # another worker may have added to it since it was loaded
            stored = await self.store.responses.get(self.tenant, keeper.lease.response_id)
        if stored.ending is not None:
            return stored
        stored.taken_up = True
        try:
            response = await self.rebuild(stored, keeper)
        except StintError as error:
            return await self.fail(stored, keeper, error)
        try:
            return await self.run(response, stored, keeper)
        finally:
            if response.log.response.ending is None:
                await response.log.lapse()
            response.log.stop()

    async def rebuild(self, stored: StoredResponse, keeper: ResponseKeeper) -> ResponseRun:
        """Step 3: rebuild the run from the stored response.

        Raises:
            StintError: something that the run needs no longer exists, or was in use for too long.
        """
        return await self.resumer.rebuild(stored, keeper)

    async def run(self, response: ResponseRun, stored: StoredResponse, keeper: ResponseKeeper) -> StoredResponse:
        """Step 4: run the response to its end, and store its events if it is streamed."""
        position, lease = ReplayPosition(), keeper.lease
        if lease.attempts > 1:  # an overtaken worker may still be running
            position = await self.recovery.freeze_stream(stored, lease.lease_id)
        elif stored.header.streamed:
            position = read_position(await self.recovery.read_stream(response.response_id))
        background = self.store.background if stored.header.streamed else None
        end = stored.header.expires_at
        writer = StreamWriter(
            background, self.tenant, response.response_id, position.events, lease_id=lease.lease_id, expires_at=end
        )
        try:
            async with writer.flushing():
                writer.add_events(continue_stream(response, stored, position))
                await resume(response, writer)
        except StintError as error:
            ended = await self.fail(response.log.response, keeper, error, response)
            response.log.response = ended
            await response.log.release()
        return response.log.response

    async def finish(self, stored: StoredResponse | None, event_id: str | None) -> StoredResponse | None:
        """Step 5: publish the completion event of a response that has ended, and announce it; return the response.

        Raises:
            StoreUnavailable: the event bus does not accept the event now, or the queue a task of a webhook.
        """
        if stored is not None and stored.ending is not None:
            await self.completion_events.publish(ResponseFinished.of(stored, event_id))
            await self.recovery.webhooks.response_ended(stored.header.response_id, stored.status, raises=True)
        return stored

    # ---- failures

    async def fail(
        self, stored: StoredResponse, keeper: ResponseKeeper, error: StintError, response: ResponseRun | None = None
    ) -> StoredResponse:
        """End a response as failed, or raise the error if another attempt may succeed.

        `response` is the run of this attempt, if it has started. The ending has its streamed items, and the step in
        which it failed.
        """
        if isinstance(error, Interrupted | StoreUnavailable):
            raise error
        if isinstance(error, DeadlineExceeded):
            error = DeadlineExceeded(TIME_IS_OVER)
        keeper.check()
        extra = {"response_id": stored.header.response_id, "error_code": error.code, "error": error.message}
        logger.warning("The response failed", extra=extra)
        streamed, unfinished = None, None
        if response is not None:
            streamed, begun = response.stream.items.streamed, response.running.whole()
            # Its text is in the streamed items.
            unfinished = begun and PartialStep(step_type=begun.step_type, step_id=begun.step_id)
        return await self.recovery.end_response(stored, partial(metered_failure, error), streamed, unfinished)

    async def load_stopped(self, lease: ResponseLease) -> StoredResponse | None:
        """Return a response that this worker could not end; None if another worker runs it now.

        Raises:
            Interrupted: no other worker has it; this one could not renew its lease in time.
        """
        stored = await self.load(lease.response_id)
        if stored is None or stored.ending is not None:
            return stored
        state = await self.store.response_leases.get_state(lease.tenant, lease.response_id)
        if state.cancelled_at is not None:
            return await self.end_response(lease.response_id, cancelled)
        if state.lease_id == lease.lease_id:
            raise Interrupted("The worker could not renew its lease of the response in time.")
        return None

    async def release(self, keeper: ResponseKeeper) -> None:
        """Release a response for another attempt, or end it if its last attempt failed."""
        with suppress(StintError):
            if keeper.lease.attempts >= MAX_ATTEMPTS:
                await self.end_response(keeper.lease.response_id, exhausted)
            else:
                await keeper.lapse()

    async def note_failure(self, response_id: str, error: Exception, *, last: bool) -> None:
        """Log a failed attempt, and end the response if it was the last one."""
        logger.warning("An attempt to run the response failed", extra={"error": type(error).__name__})
        if last:
            with suppress(StintError):
                await self.end_response(response_id, exhausted)

    async def end_response(self, response_id: str, ending: EndingOf) -> StoredResponse | None:
        stored = await self.load(response_id)
        with suppress(NotFound):
            return stored and await self.recovery.end_response(stored, ending)
        return None


def refuse_exhausted(stored: StoredResponse | None) -> None:
    """Raise AttemptsExhausted for a response that no attempt ended."""
    if stored is not None and has_exhausted_attempts(stored):
        raise AttemptsExhausted(EXHAUSTION)
