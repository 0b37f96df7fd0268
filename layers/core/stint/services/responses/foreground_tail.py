"""The events of a foreground response for readers that rejoin its stream: those of its log, followed by new ones.

A foreground response stores its steps and not its events, so the events are made again from the steps, by the same code
and with the same numbers as in the first stream. How new ones are found: services/runs/run_tail.py.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.partial_steps import PartialStep
from stint.loop.step_events import StepReplay
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.output_items import Encode, OutputItems
from stint.services.responses.recovery import Recovery
from stint.services.runs.run_tail import PartialReader, RunTail
from stint.store.keys import response_partials
from stint.store.store import Store

QUIET_SECONDS = 3.0
"""Seconds without a new record before the whole response is read, to see whether its process is dead."""

QUIET_GROWTH = 2
"""Each read of the whole response without a new record doubles the seconds: it may be large."""


@dataclass(frozen=True, slots=True)
class ForegroundTail:
    """Replays the events of a tenant's foreground responses, then tails new ones."""

    tenant: str
    store: Store
    recovery: Recovery

    async def read_events(
        self, stored: StoredResponse, after: int, deadline: float
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Return the events after a number as `RunTail.follow`. Several readers may follow a response at once.

        Raises:
            NotFound: the response was deleted.
            InvalidRequest: the response has ended, and has no event with that number.
        """
        ids = self.tenant, stored.header.response_id
        stored = await self.recovery.reconcile(stored)
        await self.recovery.opaque.warm_for(stored.records)
        tailed = RunTail(
            ResponseReplay(stored.header, self.recovery.opaque.encode),
            PartialReader(self.store.partial_steps, response_partials(*ids)),
            partial(self.read_rest, ids[1]),
            partial(self.check_process, ids[1]),
            quiet_seconds=QUIET_SECONDS,
            quiet_growth=QUIET_GROWTH,
        )
        beyond = (
            f"The stream of response {ids[1]} has {{}} events, numbered from 0. Event {after} does not exist. Set "
            "starting_after to the number of an existing event."
        )
        return await tailed.follow(stored, after, deadline, beyond)

    async def read_rest(self, response_id: str, start: int) -> Sequence[ResponseRecord]:
        """Read the records from an index on, and what is needed to show them. Raises NotFound."""
        records = await self.store.responses.read_rest(self.tenant, response_id, start)
        await self.recovery.opaque.warm_for(records)
        return records

    async def check_process(self, response_id: str) -> Sequence[ResponseRecord]:
        """Return the records of a quiet response, with an ending if its process died. Raises NotFound."""
        stored = await self.recovery.reconcile(await self.store.responses.get(self.tenant, response_id))
        await self.recovery.opaque.warm_for(stored.records)
        return stored.records


class ResponseReplay:
    """Makes the events of a response, record by record. `stored` has the records so far."""

    def __init__(self, header: ResponseHeader, encode: Encode) -> None:
        self.stored = StoredResponse(header)
        output = OutputItems(header.response_id, header.settings, encode, header.listed)
        self._stream = ResponseStream(header, output)
        self._steps = StepReplay()

    @property
    def count(self) -> int:
        """Return the number of events so far."""
        return self._stream.sequence

    def emit_start(self) -> Iterator[ResponseEvent]:
        yield from self._stream.emit_created()

    def emit_records(self, records: Iterable[ResponseRecord]) -> Iterator[ResponseEvent]:
        """Add records of the log, and yield their events."""
        for record in records:
            self.stored.records.append(record)
            if record.cited is not None:
                self._stream.output.add_sources(record.cited)
            if record.compaction is not None:
                yield from self._stream.emit_compaction(record.compaction)
            if record.step is not None and not (record.details and record.details.unannounced):
                for event in self._steps.emit_step(record.step, record.details):
                    yield from self._stream.emit_loop_event(event, record.details)
            if record.unfinished is not None:
                yield from self.emit_partial(record.unfinished)
            if record.ending is not None:
                yield from self._stream.emit_ending(self.stored)

    def emit_partial(self, partial: PartialStep) -> Iterator[ResponseEvent]:
        """Yield the events of the unfinished step that were not yielded yet."""
        for event in self._steps.emit_partial(partial):
            yield from self._stream.emit_loop_event(event)
