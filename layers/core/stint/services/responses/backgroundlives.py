"""Responses in the background: how they stand, and who sees to those whose worker died."""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Protocol

from stint.domain.errors import Interrupted, StintError
from stint.domain.inference import Usage
from stint.domain.responses import ResponseEnding, ResponseError, ResponseStatus, StoredResponse
from stint.domain.tasks import AnyTask, ResponseTask
from stint.services.responses.lives import settle
from stint.services.responses.opaque_texts import OpaqueTexts
from stint.services.responses.retelling import finish, read_told
from stint.store.background import MAX_ATTEMPTS
from stint.store.responsestore import ResponseStore

logger = logging.getLogger(__name__)

ATTEMPTS_EXHAUSTED = "attempts_exhausted"
EXHAUSTION = (
    f"The response was taken up {MAX_ATTEMPTS} times and none of them ended it: its workers failed or died. What was "
    "finished is stored; create it again."
)
RACES = 5


class WorkQueue(Protocol):
    """The queue whose messages the worker takes up."""

    def send(self, task: AnyTask) -> None:
        """Send a task; it may arrive more than once.

        Raises:
            StoreUnavailable: the queue does not take it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Lives:
    """The lives of a tenant's responses."""

    tenant: str
    store: ResponseStore
    queue: WorkQueue
    opaque: OpaqueTexts

    async def settle(self, stored: StoredResponse) -> StoredResponse:
        """Give a response as it is to be seen.

        One whose process died is ended; one in the background that may still be taken up is queued again, once for
        each worker that let it lie.

        Raises:
            NotFound: it was deleted meanwhile.
        """
        if stored.ending is not None or not stored.header.background:
            return await settle(self.store, self.tenant, stored)
        response_id = stored.header.response_id
        state = await asyncio.to_thread(self.store.background.look, self.tenant, response_id)
        if state.cancelled_at is not None:
            return await self.end(response_id, cancelled(stored.usage))
        if state.exhausted:
            return await self.end(response_id, exhausted(stored.usage))
        if state.lapsed and await asyncio.to_thread(
            self.store.background.claim_requeue, self.tenant, response_id, state
        ):
            await self.queue_again(response_id)
        return replace(stored, taken_up=state.attempts > 0)

    async def queue_again(self, response_id: str) -> None:
        """Send a message for a response; should that fail, the first message comes again by itself."""
        logger.warning("The worker of a response is gone: it is queued again", extra={"response_id": response_id})
        try:
            await asyncio.to_thread(self.queue.send, ResponseTask(tenant=self.tenant, response_id=response_id))
        except StintError as error:
            logger.warning("The response was not queued again", extra={"error": error.message})

    async def end(self, response_id: str, ending: ResponseEnding) -> StoredResponse:
        """End a response, unless it has ended, and its stored stream.

        Raises:
            NotFound: it was deleted.
        """
        stored = await asyncio.to_thread(self.store.responses.seal, self.tenant, response_id, ending)
        await self.end_stream(stored)
        return stored

    async def end_stream(self, stored: StoredResponse) -> None:
        """Store what is missing in the stream of a response that has ended, whoever else writes to it."""
        if not stored.header.streamed:
            return
        background, response_id = self.store.background, stored.header.response_id
        await self.opaque.warm_for(stored.records)
        for _ in range(RACES):
            told = read_told(await self.read_stream(response_id))
            if told.ended:
                return
            rest = [event.model_dump_json() for event in finish(stored, told, self.opaque.encode)]
            try:
                await asyncio.to_thread(background.put_events, self.tenant, response_id, told.events, rest)
            except Interrupted:
                continue
            return
        logger.warning("The end of a stream was not stored: it is deleted, or still written to")

    async def read_stream(self, response_id: str, after: int = -1, *, at_batch: bool = False) -> list[str]:
        """Read the stored events behind a number; see the store."""

        def read() -> list[str]:
            batches = self.store.background.events(self.tenant, response_id, after, at_batch=at_batch)
            return [text for batch in batches for text in batch]

        return await asyncio.to_thread(read)


def cancelled(usage: Usage | None) -> ResponseEnding:
    """Give the ending of a response whose client wants no more of it."""
    return ResponseEnding(status=ResponseStatus.cancelled, usage=usage)


def failed(error: StintError, usage: Usage | None) -> ResponseEnding:
    return ResponseEnding(status=ResponseStatus.failed, error=ResponseError.of(error), usage=usage)


def exhausted(usage: Usage | None) -> ResponseEnding:
    """Give the ending of a response that was taken up as often as it may be."""
    return failed(StintError(EXHAUSTION, code=ATTEMPTS_EXHAUSTED), usage)


def was_given_up(stored: StoredResponse) -> bool:
    """Tell whether a response ended because no attempt ended it."""
    error = stored.ending.error if stored.ending else None
    return error is not None and error.code == ATTEMPTS_EXHAUSTED
