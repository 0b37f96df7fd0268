"""The events of a stored response: those so far, followed by new ones.

A client may reconnect at any time, so the events must have the same numbers again. Where they come from:

    the response                               its events
    foreground                                 made from its log, as they were streamed (`ForegroundTail`)
    background, created with `stream`          stored in batches by the worker, and read in order
    background, created without `stream`       made from its log, each item as a whole

A worker that died writes no more events. So after some seconds of silence the response's lease is read, and if no
worker has it, the response is reconciled, which ends it or leaves it to the next worker. A stream of a response that
ended before its last events were stored is ended here (`end_stream`).
"""

import asyncio
from collections.abc import AsyncGenerator

from stint.dataclasses import dataclass, replace
from stint.domain.errors import DeadlineExceeded, InvalidRequest
from stint.domain.openai.stored_responses import StoredResponse
from stint.loop.model_call import TIME_IS_OVER
from stint.services.responses.recovery import Recovery
from stint.services.responses.replay import EVENTS, ReplayPosition, replay
from stint.store.store import Store

POLL_SECONDS = 0.4
"""Seconds between reads of new events."""

QUIET_SECONDS = 2.0
"""Seconds of silence before the response itself is checked, and between reads of a log without stored events."""


@dataclass(frozen=True, slots=True)
class StreamTail:
    """Replays a response's events, then tails new ones. Those of a foreground response are made from its steps."""

    tenant: str
    store: Store
    recovery: Recovery

    async def read_events(self, response_id: str, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Return the events after a number as JSON texts, up to the last one.

        The events of a background response that was not created as a stream are made from its log, each item as a
        whole. `deadline` is a time of the event loop's clock, after which the iterator raises DeadlineExceeded.

        Raises:
            NotFound: there is no such response.
            InvalidRequest: its stream has no event with that number.
        """
        stored = await self.store.responses.get(self.tenant, response_id)
        if not stored.header.background:
            return await self.read_foreground(stored, after, deadline)
        if after >= 0:
            await self.refuse_beyond_end(stored, after)
        tail = self.tail_stream if stored.header.streamed else self.tail_log
        return tail(stored, after, deadline)

    async def read_foreground(self, stored: StoredResponse, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Return the events of a foreground response."""
        from stint.services.responses.foreground_tail import ForegroundTail  # noqa: PLC0415 - few clients rejoin

        events = await ForegroundTail(self.tenant, self.store, self.recovery).read_events(stored, after, deadline)
        return (event.model_dump_json() async for event in events)

    async def refuse_beyond_end(self, stored: StoredResponse, after: int) -> None:
        response_id = stored.header.response_id
        if stored.header.streamed:
            count = await self.store.background.count_events(self.tenant, response_id)
        else:
            count = len(await self.events_of(await self.mark_taken_up(await self.recovery.reconcile(stored))))
        if after >= count:
            raise InvalidRequest(
                f"The stream of response {response_id} has {count} events so far, numbered from 0. Event {after} does "
                "not exist. Set starting_after to an existing event.",
                param="starting_after",
            )

    async def tail_stream(self, stored: StoredResponse, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Yield the stored events. During silence, check whether the response is still running."""
        response_id, clock = stored.header.response_id, asyncio.get_running_loop().time
        complete, at_batch, last_event_at = False, False, clock()
        if stored.ending is None:
            stored = await self.recovery.reconcile(stored)
        while True:
            texts = await self.recovery.read_stream(response_id, after, at_batch=at_batch)
            for text in texts:
                yield text
            after, at_batch = after + len(texts), at_batch or bool(texts)
            if complete or (texts and is_terminal(texts[-1])):
                return
            last_event_at = clock() if texts else last_event_at
            if stored.ending is not None:
                await self.recovery.end_stream(stored)
                complete = True
                continue
            if clock() - last_event_at >= QUIET_SECONDS:
                stored, last_event_at = await self.check_worker(stored), clock()
                continue
            await self.pause(POLL_SECONDS, deadline)

    async def check_worker(self, stored: StoredResponse) -> StoredResponse:
        """Read a response again unless a worker has its lease. Raises NotFound if it was deleted."""
        response_id = stored.header.response_id
        state = await self.store.response_leases.get_state(self.tenant, response_id)
        if state.held and state.cancelled_at is None:
            return stored
        again = await self.store.responses.get(self.tenant, response_id)
        return await self.recovery.reconcile(again)

    async def tail_log(self, stored: StoredResponse, after: int, deadline: float) -> AsyncGenerator[str, None]:
        """Yield the events of a log that is read repeatedly."""
        response_id = stored.header.response_id
        while True:
            stored = await self.mark_taken_up(await self.recovery.reconcile(stored))
            texts = (await self.events_of(stored))[after + 1 :]
            for text in texts:
                yield text
            after += len(texts)
            if stored.ending is not None:
                return
            await self.pause(QUIET_SECONDS / 2, deadline)
            stored = await self.store.responses.get(self.tenant, response_id)

    async def events_of(self, stored: StoredResponse) -> list[str]:
        """Return the events of a response's log."""
        await self.recovery.opaque.warm_for(stored.records)
        return [event.model_dump_json() for event in replay(stored, self.recovery.opaque.encode)]

    async def mark_taken_up(self, stored: StoredResponse) -> StoredResponse:
        """Set `taken_up` of a response that ended without a step: whether a worker ever ran it."""
        if stored.steps or stored.taken_up:
            return stored
        state = await self.store.response_leases.get_state(self.tenant, stored.header.response_id)
        return replace(stored, taken_up=state.attempts > 0)

    async def pause(self, seconds: float, deadline: float) -> None:
        if asyncio.get_running_loop().time() + seconds >= deadline:
            raise DeadlineExceeded(TIME_IS_OVER)
        await asyncio.sleep(seconds)


def is_terminal(text: str) -> bool:
    """Return whether an event is the last one of its stream."""
    position = ReplayPosition()
    position.advance(EVENTS.validate_json(text))
    return position.ended
