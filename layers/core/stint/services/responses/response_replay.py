"""The events of a foreground response from its log, with the numbers of its first stream."""

from collections.abc import Iterable, Iterator

from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.partial_steps import PartialStep
from stint.loop.step_events import StepReplay
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.output_items import Encode, OutputItems


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
