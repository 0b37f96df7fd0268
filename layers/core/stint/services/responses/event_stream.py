"""Conversion of a run's events to the events of a response.

The loop tells what happens, in neutral events with steps. The Responses API tells how its output grows, in items with
places. The stream counts its events, so that a replay of the same steps has the same numbers. A hosted call is shown
when it begins, although its item is complete only with its result; so the items are those of `OutputItems`, which
streaming, reading and resuming share.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stint.domain.ids import place_of
from stint.domain.inference import AnswerDetails
from stint.domain.openai.item_events import DeltaOf, WithResponseId, padding_of
from stint.domain.openai.response_events import (
    ErrorEvent,
    ResponseCompleted,
    ResponseCreated,
    ResponseEvent,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
    ResponseQueued,
)
from stint.domain.openai.response_resource import Response, make_response
from stint.domain.openai.stored_responses import ResponseHeader, ResponseOutcome, ResponseStatus, StoredResponse
from stint.domain.run_events import (
    CompactionComplete,
    LoopEvent,
    ReasoningEnded,
    ReasoningProgress,
    RefusalDelta,
    StepComplete,
    StepProgress,
    TextDelta,
    ToolCallDelta,
)
from stint.domain.stored_messages import CompactedHistory
from stint.services.responses.item_events import ItemStream
from stint.services.responses.masking import masked
from stint.services.responses.output_items import OutputItems, output_of
from stint.services.responses.streamed_items import StreamedItems

if TYPE_CHECKING:
    from stint.services.responses.citations import CitationParser


class ResponseStream:
    """Makes the numbered events of a response.

    `sequence` is the number of the next event, and `streamed` has the items before it. A resumed response
    continues its interrupted stream.
    """

    def __init__(
        self, header: ResponseHeader, output: OutputItems, *, sequence: int = 0, streamed: StreamedItems | None = None
    ) -> None:
        self.header = masked(header)
        self.output = output
        self.sequence = sequence
        self.items = ItemStream(raw=header.settings.has_raw_reasoning, streamed=streamed)
        self.ahead = 0
        self.citations: CitationParser | None = None

    def number(self, events: Iterable[ResponseEvent]) -> Iterator[ResponseEvent]:
        """Number events when they are emitted."""
        for event in events:
            event.sequence_number = self.sequence
            self.sequence += 1
            if self.header.settings.include_obfuscation and isinstance(event, DeltaOf):
                event.obfuscation = padding_of(event.delta)
            if isinstance(event, WithResponseId):
                event.response_id = self.header.response_id
            yield event

    def resource(
        self, status: ResponseStatus, ending: ResponseOutcome | None = None, served: str | None = None
    ) -> Response:
        return make_response(self.header, self.output.all_items, status, ending, served=served)

    def emit_created(self, *, queued: bool = False) -> Iterator[ResponseEvent]:
        """Yield the first events. A background response is queued first."""
        status = ResponseStatus.queued if queued else ResponseStatus.in_progress
        empty = make_response(self.header, (), status)
        yield from self.number([ResponseCreated(response=empty)])
        if queued:
            yield from self.number([ResponseQueued(response=empty)])
        else:
            yield from self.emit_in_progress()

    def emit_in_progress(self) -> Iterator[ResponseEvent]:
        """Yield that the response is in progress, and the tools that MCP servers listed for it."""
        started = make_response(self.header, (), ResponseStatus.in_progress)
        yield from self.number([ResponseInProgress(response=started)])
        for item in self.output.listed:
            yield from self.number(self.items.emit_list(item))

    def emit_loop_event(self, event: LoopEvent, details: AnswerDetails | None = None) -> Iterator[ResponseEvent]:
        """Yield the events for an event of the loop. `details` belong to the answer in a completed step."""
        yield from self.number(self.response_events(event, details))

    def emit_ending(self, stored: StoredResponse) -> Iterator[ResponseEvent]:
        """Yield the items that the stream lacks, and the ending of the response; nothing without an ending.

        A cancelled response ends like a failed one, with its own status. The log of an interrupted response may have
        more than the loop announced.
        """
        ending = stored.ending
        if ending is None:
            return
        if ending.broke_off:
            self.output = output_of(stored, self.output.encode)
        else:
            self.output.finish(ending)
        yield from self.number(self.missing_items())
        response = self.resource(ending.status, ending, stored.service_tier)
        events: list[ResponseEvent] = []
        match ending.status:
            case ResponseStatus.completed:
                events.append(ResponseCompleted(response=response))
            case ResponseStatus.incomplete:
                events.append(ResponseIncomplete(response=response))
            case _:
                if ending.error is not None:
                    events.append(ErrorEvent.of(ending.error, 0))
                events.append(ResponseFailed(response=response))
        yield from self.number(events)

    def response_events(self, event: LoopEvent, details: AnswerDetails | None) -> Iterator[ResponseEvent]:
        match event:
            case ReasoningProgress(text=text):
                yield from self.items.emit_reasoning(self.output.next_id("rs"), text)
            case ReasoningEnded(reasoning=reasoning):
                yield from self.items.emit_reasoning_done(self.output.reasoning(reasoning))
                self.ahead = 1
            case StepProgress(step_type="inference", delta=TextDelta() as delta):
                yield from self.emit_text(self.output.next_id("msg", self.ahead), delta)
            case StepProgress(step_type="tool_execution", delta=ToolCallDelta(tool_call=call)) if not isinstance(
                call, str
            ):
                opened = self.output.opened(call)
                if opened is not None:
                    yield from self.items.emit_call(opened)
            case CompactionComplete(compaction=compaction):
                yield from self.compaction_events(compaction)
            case StepComplete(step_details=step):
                items, self.ahead = self.output.add_step(step, details)[self.ahead :], 0
                self.citations = None
                for item in items:
                    yield from self.items.emit_rest(item)
            case _:
                pass

    def emit_compaction(self, compaction: CompactedHistory) -> Iterator[ResponseEvent]:
        """Yield the events of a stored compaction."""
        yield from self.number(self.compaction_events(compaction))

    def compaction_events(self, compaction: CompactedHistory) -> Iterator[ResponseEvent]:
        yield from self.items.emit_rest(self.output.add_compaction(compaction))

    def emit_text(self, item_id: str, delta: TextDelta) -> Iterator[ResponseEvent]:
        """Yield a piece of a text, whose markers become annotations."""
        if isinstance(delta, RefusalDelta) or not self.output.cites:
            yield from self.items.emit_text(item_id, delta)
            return
        from stint.services.responses.citations import CitationParser  # noqa: PLC0415 - few responses search files

        self.citations = self.citations or CitationParser(self.output.sources)
        for piece in self.citations.add(delta.text):
            if isinstance(piece, str):
                yield from self.items.emit_text(item_id, TextDelta(text=piece))
            else:
                yield from self.items.emit_annotation(item_id, piece)
        yield from self.items.buffer_rest(item_id, self.citations.rest)

    def missing_items(self) -> Iterator[ResponseEvent]:
        """Yield the items that the stream lacks. An open item that is not in the output was interrupted."""
        items, shown = self.items, self.output.all_items
        if items.open is not None:
            begun = items.open
            known = next((item for item in shown if item.id == begun.item.id), None)
            yield from items.emit_rest(known or begun.broken_off())
        for item in shown:
            if place_of(item.id) >= items.streamed.index:
                yield from items.emit_rest(item)
