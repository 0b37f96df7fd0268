"""Responses whose process died: how they end, and how one in the background gets another attempt.

Nobody watches processes. Whoever reads a response looks at its lease, and does what is due:

| the response           | its lease                     | what `reconcile` does                            |
|------------------------|-------------------------------|--------------------------------------------------|
| has ended              | any                           | returns it                                       |
| runs in the foreground | is held                       | returns it                                       |
| runs in the foreground | has lapsed                    | seals it as failed                               |
| is in the background   | was cancelled                 | seals it as cancelled                            |
| is in the background   | lapsed after the last attempt | seals it as failed                               |
| is in the background   | lapsed, attempts are left     | queues it again, once for each worker that died  |
| is in the background   | never taken                   | queues it again, at growing intervals, for a day |
| is in the background   | is held                       | returns it                                       |

A seal is the next record of the log, so of a worker's record and a seal only one is stored. The stored stream of a
background response is fenced by itself: it is frozen before the seal, so that the ending has just those items that
were streamed, and completed after it.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from stint.dataclasses import dataclass, replace
from stint.domain.errors import Interrupted, NotFound, StintError
from stint.domain.inference import Usage
from stint.domain.openai.stored_responses import (
    ResponseError,
    ResponseOutcome,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.domain.partial_steps import PartialStep
from stint.domain.tasks import AnyTask, ResponseTask
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.closing_record import closing_record
from stint.services.responses.replay import ReplayPosition, read_position, replay_rest
from stint.services.responses.streamed_items import StreamedItems
from stint.services.runs.webhook_events import NO_WEBHOOKS, WebhookEvents
from stint.store.response_leases import MAX_ATTEMPTS, LeaseState
from stint.store.store import Store

logger = logging.getLogger(__name__)

ATTEMPTS_EXHAUSTED = "attempts_exhausted"
EXHAUSTION = (
    f"The response was started {MAX_ATTEMPTS} times and never ended: its workers failed or died. Its finished steps "
    "are stored. Create it again."
)
MESSAGE_SECONDS = 60
"""Seconds that a response waits for a worker before it is queued again, because its message may be lost.

They are longer than the request that stores it takes from its delayed task on.
"""

RETRY_SECONDS = 10
"""Minimum seconds between two messages for one response that retries of its request send."""

QUEUE_SECONDS = 86_400
"""Seconds that a response waits for a worker before a reader ends it as failed."""

QUEUE_TIMEOUT = (
    "No worker started the response within a day, although it was queued again. Check the worker's log and the "
    "dead-letter queue of the stack (WorkDeadLetters). Create the response again."
)
RACES = 5

INTERRUPTED = "The process that ran this response ended before the response did. Finished steps are stored."

EndingOf = Callable[[Usage | None], ResponseOutcome]
"""A function that makes the ending of a response with this usage."""


class WorkQueue(Protocol):
    """The queue of the worker."""

    async def send(self, task: AnyTask) -> None:
        """Send a task; it may arrive more than once.

        Raises:
            StoreUnavailable: the queue does not accept it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recovery:
    """Ends a tenant's responses whose process died, or queues them again."""

    tenant: str
    store: Store
    queue: WorkQueue
    opaque: OpaqueTexts
    webhooks: WebhookEvents = NO_WEBHOOKS

    async def reconcile(self, stored: StoredResponse) -> StoredResponse:
        """Return a response for a reader.

        One whose process died is ended. A background response with attempts left is queued again, once for each worker
        that died.

        Raises:
            NotFound: it was deleted in the meantime.
        """
        if stored.ending is not None or not stored.header.background:
            return await mark_interrupted(self.store, self.tenant, stored, self.webhooks)
        response_id = stored.header.response_id
        state = await self.store.response_leases.get_state(self.tenant, response_id)
        if state.cancelled_at is not None:
            return await self.end_response(stored, cancelled)
        if state.exhausted:
            return await self.end_response(stored, exhausted)
        if state.attempts == 0:
            return await self.reconcile_queued(stored, state)
        if state.lapsed and await self.store.response_leases.claim_requeue(self.tenant, response_id, state):
            await self.queue_again(response_id, "The worker of a response died: the response is queued again")
        return replace(stored, taken_up=True)

    async def reconcile_queued(self, stored: StoredResponse, state: LeaseState) -> StoredResponse:
        """Return a response that no worker has started.

        It is queued again if its message may be lost, at growing intervals, and ended after a day. A second message has
        no effect.
        """
        response_id, created_at, now = stored.header.response_id, stored.header.created_at, time.time()
        if now - created_at >= QUEUE_SECONDS:
            return await self.end_response(stored, never_started)
        last = max(created_at, state.requeued_at or 0)
        pause = max(MESSAGE_SECONDS, last - created_at)
        leases = self.store.response_leases
        if now - last >= pause and await leases.claim_waiting(self.tenant, response_id, pause):
            reason = "No worker has started a response: it is queued again"
            await self.queue_again(response_id, reason, unstarted_only=True)
        return stored

    async def queue_for_retry(self, stored: StoredResponse) -> None:
        """Queue a response again that no worker has started, because the request that it repeats may have died.

        Its process may have died between the response and its message. Readers cannot know this, and wait longer. One
        retry in RETRY_SECONDS sends a message.
        """
        if stored.status is not ResponseStatus.queued:
            return
        response_id = stored.header.response_id
        if await self.store.response_leases.claim_waiting(self.tenant, response_id, RETRY_SECONDS):
            await self.queue_again(response_id, "A retry found a response that waits", unstarted_only=True)

    async def is_queued(self, response_id: str) -> bool:
        """Return whether a response is stored, and no worker has started it."""
        with suppress(NotFound):
            stored = await self.store.responses.get(self.tenant, response_id)
            return stored.status is ResponseStatus.queued
        return False

    async def queue_again(self, response_id: str, reason: str, *, unstarted_only: bool = False) -> None:
        """Send a message for a response. If this fails, the queue redelivers the first message."""
        logger.warning(reason, extra={"response_id": response_id})
        task = ResponseTask(tenant=self.tenant, response_id=response_id, unstarted_only=unstarted_only)
        try:
            await self.queue.send(task)
        except StintError as error:
            logger.warning("The response was not queued again", extra={"error": error.message})

    async def end_response(
        self,
        stored: StoredResponse,
        ending: EndingOf,
        streamed: StreamedItems | None = None,
        unfinished: PartialStep | None = None,
    ) -> StoredResponse:
        """End a response, unless it has ended, and its stored stream.

        `streamed` has the items that the response's own worker has streamed, and `unfinished` the step in which it
        ends. Other processes omit them: the stored stream has these items, that worker can no longer add to it, and
        only it knows the step.

        Raises:
            NotFound: it was deleted.
        """
        # Before the seal: a worker that could still add to the stream would stream items that the ending lacks.
        items = streamed if streamed is not None else (await self.freeze_stream(stored)).items

        def record_of(found: StoredResponse) -> ResponseRecord:
            return closing_record(found, items, ending(found.usage), unfinished)

        response_id = stored.header.response_id
        ended = await self.store.responses.seal(self.tenant, response_id, record_of)
        await self.end_stream(ended)
        # The worker announces those in the background, with their completion events.
        if not ended.header.background:
            await self.webhooks.response_ended(response_id, ended.status)
        return ended

    async def freeze_stream(self, stored: StoredResponse, lease_id: str | None = None) -> ReplayPosition:
        """Freeze the stored stream, so that only a worker with this lease can add to it, and return its position."""
        position, response_id = ReplayPosition(), stored.header.response_id
        for _ in range(RACES if stored.header.streamed else 0):
            position = read_position(await self.read_stream(response_id))
            if position.ended:
                break
            with suppress(Interrupted):
                await self.store.background.freeze(self.tenant, response_id, position.events, lease_id)
                break
        return position

    async def end_stream(self, stored: StoredResponse) -> None:
        """Store the missing events of a response that has ended, concurrently with other writers."""
        if not stored.header.streamed:
            return
        background, response_id = self.store.background, stored.header.response_id
        await self.opaque.warm_for(stored.records)
        for _ in range(RACES):
            position = read_position(await self.read_stream(response_id))
            if position.ended:
                return
            rest = [event.model_dump_json() for event in replay_rest(stored, position, self.opaque.encode)]
            try:
                await background.end_events(
                    self.tenant, response_id, position.events, rest, expires_at=stored.header.expires_at
                )
            except Interrupted:
                continue
            return
        logger.warning("The last events of a stream were not stored: the stream was deleted, or is still being written")

    async def read_stream(self, response_id: str, after: int = -1, *, at_batch: bool = False) -> list[str]:
        """Read the stored events after a number; see the store."""
        batches = self.store.background.events(self.tenant, response_id, after, at_batch=at_batch)
        return [text async for batch in batches for text in batch]


async def mark_interrupted(
    store: Store, tenant: str, stored: StoredResponse, webhooks: WebhookEvents = NO_WEBHOOKS
) -> StoredResponse:
    """End a foreground response whose lease lapsed, so that its process is dead. Return this or any other response.

    Raises:
        NotFound: it was deleted in the meantime.
    """
    if not stored.has_lapsed:
        return stored
    ended = await store.responses.seal(tenant, stored.header.response_id, interrupted_record)
    await webhooks.response_ended(ended.header.response_id, ended.status)
    return ended


def interrupted_record(stored: StoredResponse) -> ResponseRecord:
    """Return the last record of a response whose process died. Its streamed items are not known."""
    return closing_record(stored, StreamedItems(), failed(Interrupted(INTERRUPTED), stored.usage))


def cancelled(usage: Usage | None) -> ResponseOutcome:
    """Return the ending of a response that its client cancelled."""
    return ResponseOutcome(status=ResponseStatus.cancelled, usage=usage)


def failed(error: StintError, usage: Usage | None) -> ResponseOutcome:
    return ResponseOutcome(status=ResponseStatus.failed, error=ResponseError.of(error), usage=usage)


def exhausted(usage: Usage | None) -> ResponseOutcome:
    """Return the ending of a response whose attempts have all failed."""
    return failed(StintError(EXHAUSTION, code=ATTEMPTS_EXHAUSTED), usage)


def never_started(usage: Usage | None) -> ResponseOutcome:
    """Return the ending of a response that no worker started."""
    return failed(StintError(QUEUE_TIMEOUT, code="queue_timeout"), usage)


def has_exhausted_attempts(stored: StoredResponse) -> bool:
    """Return whether a response ended because no attempt ended it."""
    error = stored.ending.error if stored.ending else None
    return error is not None and error.code == ATTEMPTS_EXHAUSTED
