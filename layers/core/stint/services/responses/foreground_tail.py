"""The events of a foreground response for readers that rejoin its stream: those of its log, followed by new ones."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from stint.domain.errors import Interrupted, InvalidRequest
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseRecord, StoredResponse
from stint.services.polling_pauses import PollingPauses
from stint.services.responses.recovery import Recovery
from stint.services.responses.response_replay import ResponseReplay
from stint.store.store import Store

QUIET_SECONDS = 3.0
"""Seconds without a new record before the whole response is read, to see whether its process is dead."""


@dataclass(frozen=True, slots=True)
class ForegroundTail:
    """Replays the events of a tenant's foreground responses, then tails new ones."""

    tenant: str
    store: Store
    recovery: Recovery

    async def read_events(
        self, stored: StoredResponse, after: int, deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Return the events after a number, -1 for all, up to the last one. Several readers may follow at once.

        `deadline` is a time of the event loop's clock, after which the iterator raises DeadlineExceeded. It raises
        NotFound if the response is deleted.

        Raises:
            NotFound: the response was deleted.
            InvalidRequest: the response has ended, and has no event with that number.
        """
        stored = await self.recovery.reconcile(stored)
        await self.recovery.opaque.warm_for(stored.records)
        replay = ResponseReplay(stored.header, self.recovery.opaque.encode)
        events = [*replay.emit_start(), *replay.emit_records(stored.records)]
        if after >= replay.count and stored.ending is not None and not was_interrupted(stored):
            raise InvalidRequest(
                f"The stream of response {stored.header.response_id} has {replay.count} events, numbered from 0. Event "
                f"{after} does not exist. Set starting_after to the number of an existing event.",
                param="starting_after",
            )
        return self.events_after(after, replay, events, deadline)

    async def events_after(
        self, after: int, replay: ResponseReplay, events: list[ResponseEvent], deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events after a number. The last event of an interrupted response may have a lower one."""
        async for event in self.all_events(replay, events, deadline):
            number = event.sequence_number
            last = number == replay.count - 1 and was_interrupted(replay.stored)
            if number > after or (number < after and last):
                yield event

    async def all_events(
        self, replay: ResponseReplay, events: list[ResponseEvent], deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Yield events, and those of new records while the response runs."""
        for event in events:
            yield event
        clock = asyncio.get_running_loop().time
        pauses, seen_at, quiet = PollingPauses(deadline), clock(), QUIET_SECONDS
        while replay.stored.ending is None:
            await pauses.wait()
            stored = replay.stored
            records: Sequence[ResponseRecord] = await self.store.responses.read_rest(
                self.tenant, stored.header.response_id, len(stored.records)
            )
            if not records and clock() - seen_at >= quiet:
                records = (await self.check_process(stored)).records[len(stored.records) :]
                seen_at, quiet = clock(), 2 * quiet
            if records:
                pauses.reset()
                seen_at, quiet = clock(), QUIET_SECONDS
                await self.recovery.opaque.warm_for(records)
            for event in replay.emit_records(records):
                yield event

    async def check_process(self, stored: StoredResponse) -> StoredResponse:
        """Return a quiet response as it is stored now, ended if its process died. Raises NotFound."""
        again = await self.store.responses.get(self.tenant, stored.header.response_id)
        return await self.recovery.reconcile(again)


def was_interrupted(stored: StoredResponse) -> bool:
    """Return whether a response's process died, so that its stream may have had events that were not stored."""
    error = stored.ending.error if stored.ending else None
    return error is not None and error.code == Interrupted.code
