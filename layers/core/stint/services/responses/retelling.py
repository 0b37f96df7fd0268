"""The stored stream of a response: how far it tells the response, and what is missing of it.

An item lies in a stream at the place that its id bears: so what a log holds is told behind what was told before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter

from stint.domain.events import RefusalDelta, TextDelta
from stint.domain.ids import place_of
from stint.domain.item_events import ContentPartAdded, DeltaOf
from stint.domain.items import Message, OutputItem, ReasoningItem, WebSearchCall
from stint.domain.mcp_items import McpCall, McpListTools
from stint.domain.parts import OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.response_events import (
    OutputItemAdded,
    OutputItemDone,
    ResponseCompleted,
    ResponseEvent,
    ResponseFailed,
    ResponseIncomplete,
    ResponseInProgress,
)
from stint.domain.responses import StoredResponse
from stint.services.responses.itemstream import ItemStream, OpenItem
from stint.services.responses.output_items import Encode, output_of
from stint.services.responses.stream import ResponseStream

EVENTS: TypeAdapter[ResponseEvent] = TypeAdapter(ResponseEvent, config=ConfigDict(defer_build=True))


@dataclass(slots=True)
class Told:
    """What a stream has told: so many events, and the items before the place `index`.

    `open` is the item that is not done; `refusal` tells that its text is a refusal.
    """

    events: int = 0
    begun: bool = False
    ended: bool = False
    index: int = 0
    open: OpenItem | None = None
    refusal: bool = False

    def take(self, event: ResponseEvent) -> None:
        """Take in the next event."""
        self.events += 1
        match event:
            case ResponseInProgress():
                self.begun = True
            case ResponseCompleted() | ResponseIncomplete() | ResponseFailed():
                self.ended = True
            case OutputItemAdded(item=item, output_index=index):
                self.open, self.index, self.refusal = OpenItem(item, index), index + 1, False
            case OutputItemDone():
                self.open = None
            case ContentPartAdded(part=part):
                self.refusal = isinstance(part, RefusalPart)
            case DeltaOf(delta=delta) if self.open is not None:
                self.open.text.append(delta)


def read_told(texts: Iterable[str]) -> Told:
    """Read a stored stream."""
    told = Told()
    for text in texts:
        told.take(EVENTS.validate_json(text))
    return told


def stream_behind(stored: StoredResponse, told: Told, encode: Encode) -> ResponseStream:
    """Give the stream of a response that goes on behind what was told."""
    stream = ResponseStream(stored.header, output_of(stored, encode), sequence=told.events, index=told.index)
    stream.items.open = told.open
    return stream


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
    if stored.ending is not None:
        yield from stream.end(stored.ending)


def catch_up(stream: ResponseStream, stored: StoredResponse, told: Told) -> Iterator[ResponseEvent]:
    """Tell what the log holds and the stream does not: an open item that is not in the log has broken off."""
    if not told.begun:
        ran = stored.taken_up or bool(stored.steps)
        if not ran and (stored.ending is None or not stream.output.items):
            return
        yield from stream.take_up()
    yield from stream.number(missing_items(stream, refusal=told.refusal))


def missing_items(stream: ResponseStream, *, refusal: bool) -> Iterator[ResponseEvent]:
    items = stream.items
    begun = items.open
    if begun is not None:
        known = next((item for item in stream.output.items if item.id == begun.item.id), None)
        yield from tell(items, known) if known is not None else break_off(items, begun, refusal=refusal)
    for item in stream.output.items:
        if place_of(item.id) >= items.index:
            yield from tell(items, item)


def tell(items: ItemStream, item: OutputItem) -> Iterator[ResponseEvent]:
    """Tell a whole item, or what is missing of the open one."""
    told = "".join(items.open.text) if items.open is not None else ""
    match item:
        case McpListTools():
            yield from items.tell_list(item)
            return
        case Message(content=[OutputText(text=text)]) if text != told:
            yield from items.tell_text(item.id, TextDelta(text=text[len(told) :]))
        case Message(content=[RefusalPart(refusal=text)]) if text != told:
            yield from items.tell_text(item.id, RefusalDelta(text=text[len(told) :]))
        case ReasoningItem() if (text := thoughts_of(item)) != told:
            yield from items.tell_reasoning(item.id, text[len(told) :])
        case McpCall() | WebSearchCall() if items.open is None:
            yield from items.begin_call(as_begun(item))
        case _:
            pass
    yield from items.finish(item)


def thoughts_of(item: ReasoningItem) -> str:
    return "".join([part.text for part in item.summary] + [part.text for part in item.content or []])


def as_begun(item: McpCall | WebSearchCall) -> McpCall | WebSearchCall:
    """Give a call as it was when the server began to run it."""
    if isinstance(item, McpCall):
        return item.model_copy(update={"status": "in_progress", "output": None, "error": None})
    action = item.action.model_copy(update={"sources": None})
    return item.model_copy(update={"status": "in_progress", "action": action})


def break_off(items: ItemStream, begun: OpenItem, *, refusal: bool) -> Iterator[ResponseEvent]:
    """Close an item whose process died over it, with what was told of it."""
    text = "".join(begun.text)
    item = begun.item.model_copy(update={"status": "incomplete"})
    match item:
        case Message():
            part = RefusalPart(refusal=text) if refusal else OutputText(text=text)
            yield from items.end_message(item.model_copy(update={"content": [part]}))
        case ReasoningItem():
            filled = {"content": [ReasoningText(text=text)]} if items.raw else {"summary": [SummaryText(text=text)]}
            yield from items.end_reasoning(item.model_copy(update=filled))
        case _:
            yield from items.done(item)
