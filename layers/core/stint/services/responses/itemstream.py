"""Items as events: each is added, filled and done before the next one.

An answer's text streams as it comes, and is said to be done when its step is stored; calls are told then, as a whole.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from stint.domain.events import RefusalDelta, TextDelta
from stint.domain.item_events import (
    ContentPartAdded,
    ContentPartDone,
    FunctionCallArgumentsDelta,
    FunctionCallArgumentsDone,
    McpCallArgumentsDelta,
    McpCallArgumentsDone,
    McpCallCompleted,
    McpCallFailed,
    McpCallInProgress,
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
    WebSearchCallCompleted,
    WebSearchCallInProgress,
    WebSearchCallSearching,
)
from stint.domain.items import FunctionCall, Message, OutputItem, ReasoningItem, WebSearchCall
from stint.domain.mcp_items import McpCall, McpListTools
from stint.domain.parts import OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.response_events import OutputItemAdded, OutputItemDone, ResponseEvent

IN_PROGRESS: Literal["in_progress"] = "in_progress"


class Place(TypedDict):
    """Where an event inside an item belongs."""

    output_index: int
    item_id: str


@dataclass(slots=True)
class OpenItem:
    """The item that is being filled, as it was added at `index`."""

    item: OutputItem
    index: int
    text: list[str] = field(default_factory=list)

    @property
    def place(self) -> Place:
        return Place(output_index=self.index, item_id=self.item.id)


class ItemStream:
    """Tells the items of a response. `index` is the place of the next one; `raw` reasoning is told as it is."""

    def __init__(self, *, raw: bool, index: int = 0) -> None:
        self.raw = raw
        self.index = index
        self.open: OpenItem | None = None

    def tell_list(self, item: McpListTools) -> Iterator[ResponseEvent]:
        opened = yield from self.add(item.model_copy(update={"tools": []}))
        yield McpListToolsInProgress(**opened.place)
        yield McpListToolsCompleted(**opened.place)
        yield from self.done(item)

    # ---- what streams while the model writes

    def tell_reasoning(self, item_id: str, text: str) -> Iterator[ResponseEvent]:
        if self.open is None:
            opened = yield from self.add(ReasoningItem(id=item_id))
            if self.raw:
                yield ContentPartAdded(**opened.place, content_index=0, part=ReasoningText(text=""))
            else:
                yield ReasoningSummaryPartAdded(**opened.place, summary_index=0, part=SummaryText(text=""))
        opened = self.current()
        opened.text.append(text)
        if self.raw:
            yield ReasoningTextDelta(**opened.place, content_index=0, delta=text)
        else:
            yield ReasoningSummaryTextDelta(**opened.place, summary_index=0, delta=text)

    def end_reasoning(self, item: ReasoningItem) -> Iterator[ResponseEvent]:
        """Close the reasoning before the answer begins: the provider is done with it."""
        opened = self.open
        if opened is None:
            yield from self.add(item.model_copy(update={"summary": [], "content": None, "encrypted_content": None}))
        else:
            text = "".join(opened.text)
            if self.raw:
                yield ReasoningTextDone(**opened.place, content_index=0, text=text)
                yield ContentPartDone(**opened.place, content_index=0, part=ReasoningText(text=text))
            else:
                yield ReasoningSummaryTextDone(**opened.place, summary_index=0, text=text)
                yield ReasoningSummaryPartDone(**opened.place, summary_index=0, part=SummaryText(text=text))
        yield from self.done(item)

    def tell_text(self, item_id: str, delta: TextDelta) -> Iterator[ResponseEvent]:
        refusal = isinstance(delta, RefusalDelta)
        if self.open is None:
            item = Message(id=item_id, role="assistant", content=[], status=IN_PROGRESS)
            yield from self.begin_message(item, part_of("", refusal=refusal))
        opened = self.current()
        if refusal:
            yield RefusalTextDelta(**opened.place, content_index=0, delta=delta.text)
        else:
            yield OutputTextDelta(**opened.place, content_index=0, delta=delta.text)

    def begin_message(self, item: Message, part: OutputText | RefusalPart) -> Iterator[ResponseEvent]:
        opened = yield from self.add(item)
        yield ContentPartAdded(**opened.place, content_index=0, part=part)

    # ---- what is told when a step is stored

    def finish(self, item: OutputItem) -> Iterator[ResponseEvent]:
        """Tell that an item is complete, and before that what has not been told of it."""
        match item:
            case Message():
                yield from self.end_message(item)
            case ReasoningItem():
                yield from self.end_reasoning(item)
            case FunctionCall():
                opened = yield from self.add(item.model_copy(update={"arguments": "", "status": IN_PROGRESS}))
                yield FunctionCallArgumentsDelta(**opened.place, delta=item.arguments)
                yield FunctionCallArgumentsDone(**opened.place, arguments=item.arguments)
                yield from self.done(item)
            case McpCall():
                opened = self.current()
                kind = McpCallFailed if item.status == "failed" else McpCallCompleted
                yield kind(**opened.place)
                yield from self.done(item)
            case WebSearchCall():
                yield WebSearchCallCompleted(**self.current().place)
                yield from self.done(item)
            case _:
                yield from self.add(item)
                yield from self.done(item)

    def end_message(self, item: Message) -> Iterator[ResponseEvent]:
        [part] = item.content
        if self.open is None:
            empty = item.model_copy(update={"content": [], "status": IN_PROGRESS})
            yield from self.begin_message(empty, part_of("", refusal=isinstance(part, RefusalPart)))
        place = self.current().place
        if isinstance(part, RefusalPart):
            yield RefusalTextDone(**place, content_index=0, refusal=part.refusal)
            yield ContentPartDone(**place, content_index=0, part=part)
        elif isinstance(part, OutputText):
            yield OutputTextDone(**place, content_index=0, text=part.text)
            yield ContentPartDone(**place, content_index=0, part=part)
        yield from self.done(item)

    def begin_call(self, item: McpCall | WebSearchCall) -> Iterator[ResponseEvent]:
        """Tell that the server begins to run a call."""
        if isinstance(item, WebSearchCall):
            opened = yield from self.add(item)
            yield WebSearchCallInProgress(**opened.place)
            yield WebSearchCallSearching(**opened.place)
            return
        opened = yield from self.add(item.model_copy(update={"arguments": ""}))
        yield McpCallInProgress(**opened.place)
        yield McpCallArgumentsDelta(**opened.place, delta=item.arguments)
        yield McpCallArgumentsDone(**opened.place, arguments=item.arguments)

    # ---- items

    def current(self) -> OpenItem:
        assert self.open is not None  # noqa: S101 - begun by the caller
        return self.open

    def add(self, item: OutputItem) -> Generator[ResponseEvent, None, OpenItem]:
        opened = OpenItem(item, self.index)
        self.open = opened
        self.index += 1
        yield OutputItemAdded(output_index=opened.index, item=item)
        return opened

    def done(self, item: OutputItem) -> Iterator[ResponseEvent]:
        opened, self.open = self.current(), None
        yield OutputItemDone(output_index=opened.index, item=item)


def part_of(text: str, *, refusal: bool) -> OutputText | RefusalPart:
    return RefusalPart(refusal=text) if refusal else OutputText(text=text)
