"""Conversion of items to events. Each item is added, filled and done before the next one.

An answer's text is streamed, and is done when its step is stored. Calls are then emitted as a whole.
"""

from collections.abc import Generator, Iterator
from typing import Literal

from stint.domain.openai.item_events import (
    AnnotationAdded,
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    McpListToolsCompleted,
    McpListToolsInProgress,
    OutputTextDelta,
    OutputTextDone,
    ReasoningSummaryPartAdded,
    ReasoningSummaryPartDone,
    ReasoningSummaryTextDelta,
    ReasoningSummaryTextDone,
    ReasoningTextDelta,
    ReasoningTextDone,
    RefusalTextDelta,
    RefusalTextDone,
)
from stint.domain.openai.items import FunctionCall, HostedCall, Message, OutputItem, ReasoningItem
from stint.domain.openai.mcp_items import McpListTools
from stint.domain.openai.parts import Annotation, OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.openai.response_events import OutputItemAdded, OutputItemDone, ResponseEvent
from stint.domain.run_events import RefusalDelta, TextDelta
from stint.services.responses.hosted_events import added_call, begin_events, result_events, started_call
from stint.services.responses.streamed_items import OpenItem, StreamedItems

IN_PROGRESS: Literal["in_progress"] = "in_progress"


class ItemStream:
    """Emits the items of a response as events. `raw` reasoning is emitted as it is."""

    def __init__(self, *, raw: bool, streamed: StreamedItems | None = None) -> None:
        self.raw = raw
        self.streamed = streamed or StreamedItems()

    def emit_list(self, item: McpListTools) -> Iterator[ResponseEvent]:
        opened = yield from self.emit_added(item.model_copy(update={"tools": []}))
        yield McpListToolsInProgress(**opened.place)
        yield McpListToolsCompleted(**opened.place)
        yield from self.emit_item_done(item)

    # ---- what streams while the model writes

    def emit_reasoning(self, item_id: str, text: str) -> Iterator[ResponseEvent]:
        if self.open is None:
            opened = yield from self.emit_added(ReasoningItem(id=item_id))
            if self.raw:
                opened.part = ReasoningText(text="")
                yield ContentPartAdded(**opened.place, content_index=0, part=opened.part)
            else:
                opened.part = SummaryText(text="")
                yield ReasoningSummaryPartAdded(**opened.place, summary_index=0, part=opened.part)
        opened = self.current()
        opened.text.append(text)
        if self.raw:
            yield ReasoningTextDelta(**opened.place, content_index=0, delta=text)
        else:
            yield ReasoningSummaryTextDelta(**opened.place, summary_index=0, delta=text)

    def emit_reasoning_done(self, item: ReasoningItem) -> Iterator[ResponseEvent]:
        """End the reasoning before the answer starts."""
        opened = self.open
        if opened is None:
            yield from self.emit_added(
                item.model_copy(update={"summary": [], "content": None, "encrypted_content": None})
            )
        else:
            text = "".join(opened.text)
            if self.raw:
                yield ReasoningTextDone(**opened.place, content_index=0, text=text)
                yield ContentPartDone(**opened.place, content_index=0, part=ReasoningText(text=text))
            else:
                yield ReasoningSummaryTextDone(**opened.place, summary_index=0, text=text)
                yield ReasoningSummaryPartDone(**opened.place, summary_index=0, part=SummaryText(text=text))
        yield from self.emit_item_done(item)

    def emit_text(self, item_id: str, delta: TextDelta) -> Iterator[ResponseEvent]:
        refusal = isinstance(delta, RefusalDelta)
        if self.open is None:
            yield from self.emit_message(empty_message(item_id), part_of("", refusal=refusal))
        opened = self.current()
        opened.text.append(delta.text)
        if refusal:
            yield RefusalTextDelta(**opened.place, content_index=0, delta=delta.text)
        else:
            yield OutputTextDelta(**opened.place, content_index=0, delta=delta.text)

    def emit_annotation(self, item_id: str, annotation: Annotation) -> Iterator[ResponseEvent]:
        """Yield an annotation of the text so far."""
        if self.open is None:
            yield from self.emit_message(empty_message(item_id), OutputText(text=""))
        opened = self.current()
        index = len(opened.annotations)
        opened.annotations.append(annotation)
        yield AnnotationAdded(**opened.place, content_index=0, annotation_index=index, annotation=annotation)

    def buffer_rest(self, item_id: str, rest: str) -> Iterator[ResponseEvent]:
        """Keep the end of a text, which is emitted later, for the case that the answer breaks off."""
        if self.open is None and rest:
            yield from self.emit_message(empty_message(item_id), OutputText(text=""))
        if self.open is not None:
            self.open.waiting = rest

    def emit_message(self, item: Message, part: OutputText | RefusalPart) -> Iterator[ResponseEvent]:
        opened = yield from self.emit_added(item)
        opened.part = part
        yield ContentPartAdded(**opened.place, content_index=0, part=part)

    # ---- what is emitted when a step is stored

    def emit_done(self, item: OutputItem) -> Iterator[ResponseEvent]:
        """Yield the missing events and the end of an item."""
        match item:
            case Message():
                yield from self.emit_message_done(item)
            case ReasoningItem():
                yield from self.emit_reasoning_done(item)
            case FunctionCall():
                opened = yield from self.emit_added(item.model_copy(update={"arguments": "", "status": IN_PROGRESS}))
                yield FunctionCallArgumentsDelta(**opened.place, delta=item.arguments)
                yield FunctionCallArgumentsDone(**opened.place, arguments=item.arguments)
                yield from self.emit_item_done(item)
            case _ if isinstance(item, HostedCall):
                if item.status != "incomplete":
                    yield from result_events(item, self.current().place)
                yield from self.emit_item_done(item)
            case _:
                yield from self.emit_added(item)
                yield from self.emit_item_done(item)

    def emit_message_done(self, item: Message) -> Iterator[ResponseEvent]:
        [part] = item.content
        if self.open is None:
            yield from self.emit_message(empty_message(item.id), part_of("", refusal=isinstance(part, RefusalPart)))
        place = self.current().place
        if isinstance(part, RefusalPart):
            yield RefusalTextDone(**place, content_index=0, refusal=part.refusal)
            yield ContentPartDone(**place, content_index=0, part=part)
        elif isinstance(part, OutputText):
            for annotation in part.annotations[len(self.current().annotations) :]:
                yield from self.emit_annotation(item.id, annotation)
            yield OutputTextDone(**place, content_index=0, text=part.text)
            yield ContentPartDone(**place, content_index=0, part=part)
        yield from self.emit_item_done(item)

    def emit_call(self, item: HostedCall) -> Iterator[ResponseEvent]:
        """Yield the start of a call that the server runs."""
        opened = yield from self.emit_added(added_call(item))
        yield from begin_events(item, opened)

    def emit_rest(self, item: OutputItem) -> Iterator[ResponseEvent]:
        """Yield the events of an item that the stream lacks: all, or the rest of the open item."""
        streamed = "".join(self.open.text) if self.open is not None else ""
        match item:
            case McpListTools():
                yield from self.emit_list(item)
                return
            case Message(content=[OutputText(text=text)]) if text != streamed:
                yield from self.emit_text(item.id, TextDelta(text=text[len(streamed) :]))
            case Message(content=[RefusalPart(refusal=text)]) if text != streamed:
                yield from self.emit_text(item.id, RefusalDelta(text=text[len(streamed) :]))
            case ReasoningItem() if (text := reasoning_text_of(item)) != streamed:
                yield from self.emit_reasoning(item.id, text[len(streamed) :])
            case _ if isinstance(item, HostedCall) and self.open is None:
                yield from self.emit_call(started_call(item))
            case _:
                pass
        yield from self.emit_done(item)

    # ---- items

    @property
    def open(self) -> OpenItem | None:
        return self.streamed.open

    def current(self) -> OpenItem:
        assert self.open is not None  # noqa: S101 - begun by the caller
        return self.open

    def emit_added(self, item: OutputItem) -> Generator[ResponseEvent, None, OpenItem]:
        streamed = self.streamed
        opened = streamed.open = OpenItem(item, streamed.index)
        streamed.index += 1
        yield OutputItemAdded(output_index=opened.index, item=item)
        return opened

    def emit_item_done(self, item: OutputItem) -> Iterator[ResponseEvent]:
        opened, self.streamed.open = self.current(), None
        self.streamed.done.append(item)
        yield OutputItemDone(output_index=opened.index, item=item)


def part_of(text: str, *, refusal: bool) -> OutputText | RefusalPart:
    return RefusalPart(refusal=text) if refusal else OutputText(text=text)


def reasoning_text_of(item: ReasoningItem) -> str:
    return "".join([part.text for part in item.summary] + [part.text for part in item.content or []])


def empty_message(item_id: str) -> Message:
    return Message(id=item_id, role="assistant", content=[], status=IN_PROGRESS)
