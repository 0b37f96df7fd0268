"""The events of a stored response: replayed from its log, or from the position that its stored stream has reached.

The id of an item has its place in the output, so the items of a log follow those that were emitted before.
"""

from collections.abc import Iterable, Iterator

from pydantic import ConfigDict, TypeAdapter

from stint.dataclasses import dataclass, field
from stint.domain.openai.item_events import AnnotationAdded, ContentPartAdded, DeltaOf, ReasoningSummaryPartAdded
from stint.domain.openai.response_events import (
    OutputItemAdded,
    OutputItemDone,
    ResponseCompleted,
    ResponseEvent,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
)
from stint.domain.openai.stored_responses import StoredResponse
from stint.services.responses.event_stream import ResponseStream
from stint.services.responses.output_items import Encode, output_of
from stint.services.responses.streamed_items import OpenItem, StreamedItems

EVENTS: TypeAdapter[ResponseEvent] = TypeAdapter(ResponseEvent, config=ConfigDict(defer_build=True))


@dataclass(slots=True)
class ReplayPosition:
    """The position at the end of a stored stream: the number of its events, and their items."""

    events: int = 0
    begun: bool = False
    ended: bool = False
    items: StreamedItems = field(default_factory=StreamedItems)

    def advance(self, event: ResponseEvent) -> None:
        """Advance by one event."""
        self.events += 1
        items = self.items
        match event:
            case ResponseInProgress():
                self.begun = True
            case ResponseCompleted() | ResponseIncomplete() | ResponseFailed():
                self.ended = True
            case OutputItemAdded(item=item, output_index=index):
                items.open, items.index = OpenItem(item, index), index + 1
            case OutputItemDone(item=item):
                items.open = None
                items.done.append(item)
            case ContentPartAdded(part=part) | ReasoningSummaryPartAdded(part=part) if items.open is not None:
                items.open.part = part
            case AnnotationAdded(annotation=annotation) if items.open is not None:
                items.open.annotations.append(annotation)
            case DeltaOf(delta=delta) if items.open is not None:
                items.open.text.append(delta)


def read_position(texts: Iterable[str]) -> ReplayPosition:
    """Return the position at the end of a stored stream."""
    position = ReplayPosition()
    for text in texts:
        position.advance(EVENTS.validate_json(text))
    return position


def replay(stored: StoredResponse, encode: Encode) -> Iterator[ResponseEvent]:
    """Yield the events of a response from its log, each item as a whole: the same events for every reader."""
    stream = stream_from(stored, ReplayPosition(), encode)
    yield from stream.emit_created(queued=True)
    yield from emit_rest(stream, stored, ReplayPosition())


def replay_rest(stored: StoredResponse, position: ReplayPosition, encode: Encode) -> Iterator[ResponseEvent]:
    """Yield the events of a response that has ended, from a position on."""
    yield from emit_rest(stream_from(stored, position, encode), stored, position)


def stream_from(stored: StoredResponse, position: ReplayPosition, encode: Encode) -> ResponseStream:
    """Return the stream of a response that continues from a position."""
    return ResponseStream(stored.header, output_of(stored, encode), sequence=position.events, streamed=position.items)


def emit_rest(stream: ResponseStream, stored: StoredResponse, position: ReplayPosition) -> Iterator[ResponseEvent]:
    yield from emit_missing(stream, stored, position)
    yield from stream.emit_ending(stored)


def emit_missing(stream: ResponseStream, stored: StoredResponse, position: ReplayPosition) -> Iterator[ResponseEvent]:
    """Yield the log's events that the stream lacks. An open item that is not in the log was interrupted."""
    if not position.begun:
        ran = stored.taken_up or bool(stored.steps)
        if not ran and (stored.ending is None or not stream.output.all_items):
            return
        yield from stream.emit_in_progress()
    yield from stream.number(stream.missing_items())
