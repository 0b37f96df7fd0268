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
from stint.models.openai.answer import read_logprobs
from stint.models.openai.streamed_answer import FailedAnswer
from stint.models.openai.usage import RESPONSE_USAGE, read_usage
from stint.models.openai_responses.reasoning import (
    BETWEEN,
    MAX_CHARACTERS,
    AnswerPlace,
    write_head,
    write_item,
    write_phase,
)
from stint.models.port import read_tier

ABOUT_REQUEST = ("invalid_", "image_", "unsupported_", "empty_image")
"""The beginnings of the codes of a response that failed because of its request."""


@dataclass(slots=True)
class _Item:
    """An item that has begun. `read` is the number of characters of its text, refusal or arguments so far."""

    kind: str
    read: int = 0
    call: int | None = None
    named: bool = False
    texts: list[tuple[int, int]] = field(default_factory=list)
    part: tuple[str, Any] | None = None
    is_done: bool = False


class ResponseEventReader:
    """One answer, read event by event. `origin` is the server and the model of the request.

    It reads OpenAI's documented events, those of Open Responses, and a whole response that was not streamed. Items of
    tools that the server runs are ignored, because a request has none.
    """

    kind = "response event"
    may_end_with_done = False

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._items: dict[int, _Item] = {}
        self._characters = self._thought = self._calls = 0
        self._messages = 0
        self._signed = 0
        self._phase = ""
        self._ending: FinishReason | None = None
        self._usage: Usage | None = None
        self._tier: str | None = None

    @property
    def is_finished(self) -> bool:
        """Return whether the response has ended. Nothing can follow."""
        return self._ending is not None

    def feed(self, payload: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the JSON of one event, or of a whole response."""
        kind = payload.get("type")
        if kind is None and payload.get("object") == "response":
            yield from self._end(payload)
            return
        match str(kind).removeprefix("response."):
            case "output_item.added":
                yield from self._begin(_place(payload), payload["item"])
            case "output_item.done":
                yield from self._complete(_place(payload), payload["item"])
            case "output_text.delta":
                yield from self._text(_place(payload), payload["delta"], payload.get("logprobs"))
            case "refusal.delta":
                yield from self._refuse(_place(payload), payload["delta"])
            case "function_call_arguments.delta":
                yield from self._arguments(_place(payload), payload["delta"])
            case "completed" | "incomplete" | "failed" | "done" | "cancelled":
                yield from self._end(payload["response"])
            case "error":
                raise FailedAnswer(_explained({key: value for key, value in payload.items() if key != "type"}))
            case name if name.startswith("reasoning") and name.endswith(".delta"):
                part = ("summary", payload.get("summary_index")) if "summary" in name else ("content", None)
                yield from self._think(_place(payload), part, payload["delta"])
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
        begun = self._items[index] = _Item(str(item.get("type")))
        if begun.kind == "message":
            yield from self._begin_message(item.get("phase"))
        elif begun.kind == "function_call":
            begun.call, self._calls = self._calls, self._calls + 1
            yield from self._name(begun, item)

    def _begin_message(self, phase: Any) -> Iterator[ModelChunk]:
        phase = phase if phase in ("commentary", "final_answer") else ""
        if phase != self._phase:
            self._phase = phase
            yield from self._sign(write_phase(phase, self._here()))
        if self._messages and self._characters:
            yield self._write(BETWEEN)
        self._messages += 1

    def _name(self, begun: _Item, item: dict[str, Any]) -> Iterator[ModelChunk]:
        """Return the first chunk of a call as soon as its name is known."""
        name = item.get("name")
        if begun.call is not None and not begun.named and isinstance(name, str) and name:
            begun.named = True
            call_id = item.get("call_id") or item.get("id")
            yield ToolCallChunk(begun.call, call_id=call_id if isinstance(call_id, str) else "", name=name)

    def _item(self, index: int, kind: str) -> Iterator[ModelChunk]:
        """Begin an item whose beginning was not sent."""
        yield from self._begin(index, {"type": kind})

    def _text(self, index: int, delta: str, logprobs: Any = None) -> Iterator[ModelChunk]:
        yield from self._item(index, "message")
        if delta:
            self._items[index].read += len(delta)
            yield self._write(delta, tuple(read_logprobs({"content": logprobs})))

    def _write(self, text: str, logprobs: tuple[Any, ...] = ()) -> TextChunk:
        self._characters += len(text)
        return TextChunk(text, logprobs)

    def _refuse(self, index: int, delta: str) -> Iterator[ModelChunk]:
        yield from self._item(index, "message")
        if delta:
            self._items[index].read += len(delta)
            self._characters += len(delta)
            yield RefusalChunk(delta)

    def _arguments(self, index: int, delta: str) -> Iterator[ModelChunk]:
        yield from self._item(index, "function_call")
        call = self._items[index].call
        if delta and call is not None:
            self._items[index].read += len(delta)
            yield ToolCallChunk(call, arguments=delta)

    def _think(self, index: int, part: tuple[str, Any], delta: str) -> Iterator[ModelChunk]:
        """Read a piece of reasoning. Of an item with both a summary and the reasoning itself, the first one counts."""
        yield from self._item(index, "reasoning")
        item = self._items[index]
        if not delta or (item.part is not None and item.part[0] != part[0]):
            return
        if self._is_late():
            item.part, item.read = part, item.read + len(delta)
            return
        if item.part != part:
            if self._thought:
                yield self._think_text(BETWEEN)
            item.part = part
            item.texts.append((self._thought, self._thought))
        item.read += len(delta)
        yield self._think_text(delta)
        item.texts[-1] = (item.texts[-1][0], self._thought)

    def _think_text(self, text: str) -> ReasoningChunk:
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
            yield from self._name(begun, item)
            yield from self._arguments(index, _string(item.get("arguments"))[begun.read :])
        elif begun.kind == "reasoning":
            yield from self._complete_reasoning(index, item)

    def _complete_message(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        skipped = self._items[index].read
        for part in item.get("content") or []:
            text = _string(part.get("text")) or _string(part.get("refusal"))
            rest, skipped = text[skipped:], max(skipped - len(text), 0)
            if part.get("type") == "refusal":
                yield from self._refuse(index, rest)
            else:
                yield from self._text(index, rest, part.get("logprobs") if rest == text else None)

    def _complete_reasoning(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        begun = self._items[index]
        if not begun.read:
            for place, part in enumerate(item.get("summary") or []):
                yield from self._think(index, ("summary", place), _string(part.get("text")))
        if not begun.read:
            for part in item.get("content") or []:
                yield from self._think(index, ("content", None), _string(part.get("text")))
        is_summary = begun.part is not None and begun.part[0] == "summary"
        texts = begun.texts if is_summary == bool(item.get("encrypted_content")) else []
        yield from self._sign(write_item(item, self._here(), texts))

    def _sign(self, line: str) -> Iterator[ReasoningChunk]:
        """Yield what is needed to send an item back. Items beyond the limit are omitted."""
        if line and self._signed + len(line) <= MAX_CHARACTERS:
            head = "" if self._signed else write_head(self._origin)
            self._signed += len(line)
            yield ReasoningChunk(signature=head + line, late=self._is_late())

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
            raise FailedAnswer(_explained(response.get("error") or {"message": f"The response is {status!r}."}))
        for index, item in enumerate(response.get("output") or []):
            yield from self._complete(index, item)
        self._usage = read_usage(response.get("usage") or {}, RESPONSE_USAGE) if response.get("usage") else None
        self._tier = read_tier(response.get("service_tier"))
        reason = (response.get("incomplete_details") or {}).get("reason") if status == "incomplete" else None
        if status == "completed":
            self._ending = FinishReason.stop
        else:
            self._ending = FinishReason.content_filter if reason == "content_filter" else FinishReason.length


def _place(payload: dict[str, Any]) -> int:
    index = payload.get("output_index", 0)
    if not isinstance(index, int):
        raise TypeError("output_index is not an integer")
    return index


def _explained(error: Any) -> Any:
    """Return an error object with its type, which a response lacks, if its code says that the request is wrong."""
    if isinstance(error, dict) and str(error.get("code")).startswith(ABOUT_REQUEST):
        return {"type": "invalid_request_error", **error}
    return error


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
