"""The events of a foreground response for readers that rejoin its stream: those of its log, followed by new ones."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import Interrupted, InvalidRequest
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseRecord, StoredResponse
from stint.services.responses.recovery import Recovery
from stint.services.responses.response_replay import ResponseReplay
from stint.services.runs.partial_reader import PartialReader
from stint.services.runs.polling_pauses import PollingPauses
from stint.store.keys import response_partials
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
        partials = PartialReader(self.store.partial_steps, response_partials(self.tenant, stored.header.response_id))
        tailed = TailedResponse(self, ResponseReplay(stored.header, self.recovery.opaque.encode), partials)
        events = await tailed.replay_log(stored)
        if after >= tailed.replay.count and stored.ending is not None and not was_interrupted(stored):
            raise InvalidRequest(
                f"The stream of response {stored.header.response_id} has {tailed.replay.count} events, numbered from "
                f"0. Event {after} does not exist. Set starting_after to the number of an existing event.",
                param="starting_after",
            )
        return tailed.events_after(after, events, deadline)

    async def check_process(self, stored: StoredResponse) -> StoredResponse:
        """Return a quiet response as it is stored now, ended if its process died. Raises NotFound."""
        again = await self.store.responses.get(self.tenant, stored.header.response_id)
        return await self.recovery.reconcile(again)


@dataclass(slots=True)
class TailedResponse:
    """A foreground response that one reader follows."""

    tail: ForegroundTail
    replay: ResponseReplay
    partials: PartialReader

    async def replay_log(self, stored: StoredResponse) -> list[ResponseEvent]:
        """Return the events of a stored response. What is known of an interrupted step comes before its failure."""
        replay = self.replay
        events = [*replay.emit_start()]
        if was_interrupted(stored):
            events += replay.emit_records(stored.records[:-1])
            events += await self.read_partial()
        return [*events, *replay.emit_records(stored.records[len(replay.stored.records) :])]

    async def read_partial(self) -> Iterator[ResponseEvent]:
        """Return the events of the unfinished step that were not yielded yet."""
        return self.replay.emit_partial(await self.partials.read(self.replay.last_step))

    async def events_after(
        self, after: int, events: list[ResponseEvent], deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events after a number. The last event of an interrupted response may have a lower one."""
        async for event in self.all_events(events, deadline):
            number = event.sequence_number
            last = number == self.replay.count - 1 and was_interrupted(self.replay.stored)
            if number > after or (number < after and last):
                yield event

    async def all_events(self, events: list[ResponseEvent], deadline: float) -> AsyncGenerator[ResponseEvent, None]:
        """Yield events, and those of new records and of parts of the next step while the response runs."""
        for event in events:
            yield event
        pauses, clock = PollingPauses(deadline), asyncio.get_running_loop().time
        seen_at, patience = clock(), QUIET_SECONDS
        while self.replay.stored.ending is None:
            for event in await self.read_partial():
                pauses.reset()
                yield event
            await pauses.wait()
            quiet = clock() - seen_at >= patience
            records = await self.read_records(quiet=quiet)
            if records or quiet:
                seen_at, patience = clock(), QUIET_SECONDS if records else 2 * patience
            if records:
                pauses.reset()
            for event in self.replay.emit_records(records):
                yield event

    async def read_records(self, *, quiet: bool) -> Sequence[ResponseRecord]:
        """Return new records. If a `quiet` response has none, check its process."""
        stored, tail = self.replay.stored, self.tail
        response_id, start = stored.header.response_id, len(stored.records)
        records: Sequence[ResponseRecord] = await tail.store.responses.read_rest(tail.tenant, response_id, start)
        if quiet and not records:
            records = (await tail.check_process(stored)).records[start:]
        await tail.recovery.opaque.warm_for(records)
        return records


def was_interrupted(stored: StoredResponse) -> bool:
    """Return whether a response's process died, so that its stream may have had events that were not stored."""
    error = stored.ending.error if stored.ending else None
    return error is not None and error.code == Interrupted.code
