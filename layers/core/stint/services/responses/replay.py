"""The stored stream of a response: how far it tells the response, and what is missing of it.

An item lies in a stream at the place that its id bears: so what a log holds is told behind what was told before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import ConfigDict, TypeAdapter

from stint.domain.openai.item_events import ContentPartAdded, DeltaOf, ReasoningSummaryPartAdded
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
class Told:
    """What a stream has told: so many events, and their items."""

    events: int = 0
    begun: bool = False
    ended: bool = False
    items: StreamedItems = field(default_factory=StreamedItems)

    def take(self, event: ResponseEvent) -> None:
        """Take in the next event."""
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
            case DeltaOf(delta=delta) if items.open is not None:
                items.open.text.append(delta)


def read_told(texts: Iterable[str]) -> Told:
    """Read a stored stream."""
    told = Told()
    for text in texts:
        told.take(EVENTS.validate_json(text))
    return told


def stream_behind(stored: StoredResponse, told: Told, encode: Encode) -> ResponseStream:
    """Give the stream of a response that goes on behind what was told."""
    return ResponseStream(stored.header, output_of(stored, encode), sequence=told.events, streamed=told.items)


def replay(stored: StoredResponse, encode: Encode) -> Iterator[ResponseEvent]:
    """Tell a response from its beginning, each item as a whole: the same events whenever it is asked."""
    stream = stream_behind(stored, Told(), encode)
    yield from stream.begin(queued=True)
    yield from tell_rest(stream, stored, Told())


def finish(stored: StoredResponse, told: Told, encode: Encode) -> Iterator[ResponseEvent]:
    """Tell what is missing of a response that has ended."""
    yield from tell_rest(stream_behind(stored, told, encode), stored, told)


def tell_rest(stream: ResponseStream, stored: StoredResponse, told: Told) -> Iterator[ResponseEvent]:
    yield from catch_up(stream, stored, told)
    yield from stream.end(stored)


def catch_up(stream: ResponseStream, stored: StoredResponse, told: Told) -> Iterator[ResponseEvent]:
    """Tell what the log holds and the stream does not: an open item that is not in the log has broken off."""
    if not told.begun:
        ran = stored.taken_up or bool(stored.steps)
        if not ran and (stored.ending is None or not stream.output.shown):
            return
        yield from stream.take_up()
    yield from stream.number(stream.missing_items())
