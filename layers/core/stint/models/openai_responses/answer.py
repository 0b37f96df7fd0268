"""Conversion of the events of a streamed response to model chunks.

Servers differ in the events that they send. So what an item has is read from its deltas, and what these did not have
from its end, and then from the response's end, which contains all items.
"""

from collections.abc import Iterator
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.inference import (
    Finished,
    FinishReason,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from stint.models.openai.answer import read_arguments, read_logprobs, read_text
from stint.models.openai.streamed_answer import FailedAnswer
from stint.models.openai.usage import RESPONSE_USAGE, read_usage
from stint.models.openai_responses.reasoning import (
    BETWEEN,
    MAX_CHARACTERS,
    PHASES,
    AnswerPlace,
    write_head,
    write_item,
    write_phase,
)
from stint.models.port import read_tier


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


class ModelResponseReader:
    """One answer, read event by event. `origin` is the server and the model of the request.

    It reads OpenAI's documented events, those of Open Responses, and a whole response that was not streamed. Items of
    tools that the server runs are ignored, because a request has none.
    """

    kind = "response event"
    may_end_with_done = False

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self._items = BegunItems()
        self._characters = self._thought = self._calls = self._messages = self._signed = 0
        self._heads = {False: write_head(origin), True: write_head(origin)}
        self._phase = ""
        self._ending: FinishReason | None = None
        self._usage: Usage | None = None
        self._tier: str | None = None

    @property
    def has_begun(self) -> bool:
        """Return whether reasoning has begun, which a model may not show."""
        return self._items.has_reasoning

    @property
    def is_finished(self) -> bool:
        """Return whether the response has ended. Nothing can follow."""
        return self._ending is not None

    def feed(self, payload: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the JSON of one event, or of a whole response."""
        if payload.get("object") == "response":
            yield from self._end(payload)
            return
        if not isinstance(payload.get("type"), str):
            raise TypeError("The payload is neither an event nor a response")
        match payload["type"].removeprefix("response."):
            case "output_item.added":
                yield from self._begin(self._items.index_in(payload), payload.get("item", {}))
            case "output_item.done":
                yield from self._complete(self._items.index_in(payload), payload.get("item", {}))
            case "output_text.delta":
                yield from self._add_text(self._items.index_in(payload), _delta(payload), payload.get("logprobs"))
            case "refusal.delta":
                yield from self._add_refusal(self._items.index_in(payload), _delta(payload))
            case "function_call_arguments.delta":
                yield from self._add_arguments(self._items.index_in(payload), _delta(payload))
            case "completed" | "incomplete" | "failed" | "done" | "cancelled" as status:
                yield from self._end({"status": status, **payload.get("response", {})})
            case "error":
                raise FailedAnswer({key: value for key, value in payload.items() if key != "type"})
            case name if name.startswith("reasoning") and name.endswith(".delta"):
                part = ("summary", payload.get("summary_index")) if "summary" in name else ("content", None)
                yield from self._add_thought(self._items.index_in(payload), part, _delta(payload))
            case _:
                pass

    def finish(self) -> Iterator[ModelChunk]:
        """Return the end."""
        reason = self._ending or FinishReason.stop
        if reason is FinishReason.stop and self._calls:
            reason = FinishReason.tool_calls
        yield Finished(reason, self._usage, self._tier)

    # ---- items

    def _begin(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        if index in self._items:
            return
        begun = BegunItem(str(item.get("type")), read_text(item.get("id")), self._here())
        self._items.add(index, begun)
        if begun.kind == "message":
            yield from self._begin_message(item.get("phase"))
        elif begun.kind == "function_call":
            yield from self._name(begun, item)

    def _begin_message(self, phase: Any) -> Iterator[ModelChunk]:
        phase = phase if phase in PHASES else ""
        if phase != self._phase:
            self._phase = phase
            # A phase alone is kept as late, so that callers get no reasoning with an answer that has none.
            is_shown = bool(self._thought or False not in self._heads) and not self._is_late()
            yield from self._sign(write_phase(phase, self._here()), late=not is_shown)
        if self._messages and self._characters:
            yield self._count_text(BETWEEN)
        self._messages += 1

    def _name(self, begun: BegunItem, item: dict[str, Any], *, is_done: bool = False) -> Iterator[ModelChunk]:
        """Return the first chunk of a call as soon as its name is known."""
        name = read_text(item.get("name"))
        if begun.call is None and (name or is_done):
            begun.call, self._calls = self._calls, self._calls + 1
            call_id = read_text(item.get("call_id")) or read_text(item.get("id"))
            yield ToolCallChunk(begun.call, call_id=call_id, name=name)

    def _begin_unsent(self, index: int, kind: str) -> Iterator[ModelChunk]:
        """Begin an item whose beginning was not sent."""
        yield from self._begin(index, {"type": kind})

    def _add_text(self, index: int, delta: str, logprobs: Any = None) -> Iterator[ModelChunk]:
        yield from self._begin_unsent(index, "message")
        if delta:
            self._items[index].read += len(delta)
            yield self._count_text(delta, tuple(read_logprobs({"content": logprobs})))

    def _count_text(self, text: str, logprobs: tuple[Any, ...] = ()) -> TextChunk:
        self._characters += len(text)
        return TextChunk(text, logprobs)

    def _add_refusal(self, index: int, delta: str) -> Iterator[ModelChunk]:
        yield from self._begin_unsent(index, "message")
        if delta:
            self._items[index].read += len(delta)
            self._characters += len(delta)
            yield RefusalChunk(delta)

    def _add_arguments(self, index: int, delta: str) -> Iterator[ModelChunk]:
        yield from self._begin_unsent(index, "function_call")
        call = self._items[index].call
        if delta and call is not None:
            self._items[index].read += len(delta)
            yield ToolCallChunk(call, arguments=delta)

    def _add_thought(self, index: int, part: tuple[str, Any], delta: str) -> Iterator[ModelChunk]:
        """Read a piece of reasoning. Of an item with both a summary and the reasoning itself, the first one counts."""
        yield from self._begin_unsent(index, "reasoning")
        item = self._items[index]
        if not delta or (item.part is not None and item.part[0] != part[0]):
            return
        if self._is_late():
            item.part, item.read = part, item.read + len(delta)
            return
        if item.part != part:
            if self._thought:
                yield self._count_thought(BETWEEN)
            item.part = part
            item.texts.append((self._thought, self._thought))
        item.read += len(delta)
        yield self._count_thought(delta)
        item.texts[-1] = (item.texts[-1][0], self._thought)

    def _count_thought(self, text: str) -> ReasoningChunk:
        self._thought += len(text)
        return ReasoningChunk(text)

    def _complete(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the end of an item, and what its deltas did not have."""
        yield from self._begin(index, item)
        begun = self._items[index]
        if begun.is_done:
            return
        begun.is_done = True
        if begun.kind == "message":
            yield from self._complete_message(index, item)
        elif begun.kind == "function_call":
            yield from self._name(begun, item, is_done=True)
            yield from self._add_arguments(index, read_arguments(item.get("arguments"))[begun.read :])
        elif begun.kind == "reasoning":
            yield from self._complete_reasoning(index, item)

    def _complete_message(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        skipped = self._items[index].read
        for part in item.get("content") or []:
            text = read_text(part.get("text")) or read_text(part.get("refusal"))
            rest, skipped = text[skipped:], max(skipped - len(text), 0)
            if part.get("type") == "refusal":
                yield from self._add_refusal(index, rest)
            else:
                yield from self._add_text(index, rest, part.get("logprobs") if rest == text else None)

    def _complete_reasoning(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        begun = self._items[index]
        if not begun.read:
            for place, part in enumerate(item.get("summary") or []):
                yield from self._add_thought(index, ("summary", place), read_text(part.get("text")))
        if not begun.read:
            for part in item.get("content") or []:
                yield from self._add_thought(index, ("content", None), read_text(part.get("text")))
        is_summary = begun.part is not None and begun.part[0] == "summary"
        # A summary belongs to encrypted content, and the reasoning itself to an item without it.
        texts = begun.texts if is_summary == bool(item.get("encrypted_content")) else []
        yield from self._sign(write_item(item, begun.place, texts), late=self._is_late())

    def _sign(self, line: str, *, late: bool) -> Iterator[ReasoningChunk]:
        """Yield what is needed to send an item back. Items beyond the limit are omitted."""
        if line and self._signed + len(line) <= MAX_CHARACTERS:
            self._signed += len(line)
            yield ReasoningChunk(signature=self._heads.pop(late, "") + line, late=late)

    def _is_late(self) -> bool:
        return bool(self._characters or self._calls)

    def _here(self) -> AnswerPlace:
        return AnswerPlace(self._characters, self._calls)

    # ---- the end

    def _end(self, response: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the end of a response, and the items that had no events.

        Raises:
            FailedAnswer: it failed, or was cancelled.
        """
        status = response.get("status")
        if status not in ("completed", "incomplete"):
            raise FailedAnswer(response.get("error") or {"message": f"The response is {status!r}."})
        for place, item in enumerate(response.get("output") or []):
            index = self._items.index_at_end(place, item)
            if index is not None:
                yield from self._complete(index, item)
        self._usage = read_usage(response.get("usage") or {}, RESPONSE_USAGE) if response.get("usage") else None
        self._tier = read_tier(response.get("service_tier"))
        reason = (response.get("incomplete_details") or {}).get("reason") if status == "incomplete" else None
        if status == "completed":
            self._ending = FinishReason.stop
        else:
            self._ending = FinishReason.content_filter if reason == "content_filter" else FinishReason.length


def _delta(event: dict[str, Any]) -> str:
    """Return the piece of text of an event. Raises TypeError if it is none."""
    delta = event.get("delta")
    if delta is not None and not isinstance(delta, str):
        raise TypeError("The delta is not a text")
    return delta or ""
