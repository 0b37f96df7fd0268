"""The items of an answer that have begun, which servers name by a place, an id, or both."""

from typing import Any

from stint.dataclasses import dataclass, field
from stint.models.openai.answer import read_text
from stint.models.openai_responses.reasoning import AnswerPlace


@dataclass(slots=True)
class BegunItem:
    """An item that has begun."""

    kind: str
    """The type of the item, such as `message`."""
    item_id: str
    """Empty if the server sends none."""
    place: AnswerPlace
    """Where the item began in the answer."""
    read: int = 0
    """The number of characters of its text, refusal, reasoning or arguments so far."""
    call: int | None = None
    """The number of a call; None until its name is known."""
    texts: list[tuple[int, int]] = field(default_factory=list)
    """The places of the texts of its reasoning in all reasoning: start and end, in characters."""
    part: tuple[str, Any] | None = None
    """The last part of its reasoning: whether it is of the summary or the content, and its index."""
    is_done: bool = False
    """Whether its end was read."""


class BegunItems:
    """The items by their `output_index`, or by a number if the server sends none."""

    def __init__(self) -> None:
        self._items: dict[int, BegunItem] = {}
        self._places: dict[str, int] = {}
        self.has_reasoning = False

    def __getitem__(self, index: int) -> BegunItem:
        return self._items[index]

    def __contains__(self, index: int) -> bool:
        return index in self._items

    def add(self, index: int, item: BegunItem) -> None:
        self._items[index] = item
        self.has_reasoning |= item.kind == "reasoning"
        if item.item_id:
            self._places.setdefault(item.item_id, index)

    def index_in(self, event: dict[str, Any]) -> int:
        """Return the place of an event's item. Raises TypeError if the event has none."""
        index = event.get("output_index")
        if isinstance(index, int):
            return index
        item_id = read_text(event.get("item_id")) or read_text((event.get("item") or {}).get("id"))
        if index is not None or not item_id:
            raise TypeError("The event has neither an output_index nor an id")
        return self._places.setdefault(item_id, len(self._places))

    def index_at_end(self, index: int, item: dict[str, Any]) -> int | None:
        """Return the place of an item of the whole response, which may omit others; None if it is unknown."""
        item_id, begun = read_text(item.get("id")), self._items.get(index)
        if begun is None or begun.item_id != item_id:
            index = self._places.get(item_id, index)
            begun = self._items.get(index)
        return index if begun is None or begun.kind == str(item.get("type")) else None
