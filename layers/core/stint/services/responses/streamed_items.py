"""The items of a response's stream."""

from typing import TypedDict

from stint.dataclasses import dataclass, field
from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.items import FunctionCall, HostedCall, OutputItem
from stint.domain.openai.mcp_items import McpCall
from stint.domain.openai.parts import Annotation, OutputText, ReasoningText, RefusalPart, SummaryText

TextPart = OutputText | RefusalPart | ReasoningText | SummaryText


class Place(TypedDict):
    """The location of an event inside an item."""

    output_index: int
    item_id: str


@dataclass(slots=True)
class OpenItem:
    """The item that is being streamed, as it was added at `index`.

    It has its empty `part`, and the `text` and `annotations` so far. `waiting` is the end of the text that was not
    emitted, because it may begin a marker.
    """

    item: OutputItem
    index: int
    part: TextPart | None = None
    text: list[str] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    waiting: str = ""

    @property
    def place(self) -> Place:
        return Place(output_index=self.index, item_id=self.item.id)

    def broken_off(self) -> OutputItem:
        """Return the item as incomplete, with the text so far."""
        text, filled = "".join(self.text) + self.waiting, dict[str, object]()
        match self.item, self.part:
            case McpCall() | FunctionCall(), _:
                filled = {"arguments": text}
            case CodeInterpreterCall(), _:
                filled = {"code": text}
            case _, RefusalPart():
                filled = {"content": [RefusalPart(refusal=text)]}
            case _, SummaryText():
                filled = {"summary": [SummaryText(text=text)]}
            case _, OutputText():
                filled = {"content": [OutputText(text=text, annotations=self.annotations)]}
            case _, ReasoningText() as part:
                filled = {"content": [part.model_copy(update={"text": text})]}
        return self.item.model_copy(update={"status": "incomplete", **filled})


@dataclass(slots=True)
class StreamedItems:
    """The items of a stream so far: finished ones, and the `open` one. The next one has the output index `index`."""

    index: int = 0
    open: OpenItem | None = None
    done: list[OutputItem] = field(default_factory=list)

    @property
    def items(self) -> list[OutputItem]:
        """Return all items, the open one as incomplete."""
        return [*self.done, *([self.open.broken_off()] if self.open is not None else [])]

    @property
    def index_of_call(self) -> int:
        """Return the index of the first call without a result, which is the open item if that is a call."""
        called = self.open is not None and isinstance(self.open.item, HostedCall)
        return self.index - called
