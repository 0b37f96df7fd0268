"""Conversion of the events of a streamed response to model chunks.

Servers differ in the events that they send. So what an item has is read from its deltas, and what these did not have
from its end, and then from the response's end, which contains all items.
"""

import json
from collections.abc import Iterator
from typing import Any

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
from stint.models.openai_responses.begun_items import BegunItem, BegunItems, string
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
                yield from self._text(self._items.index_in(payload), _delta(payload), payload.get("logprobs"))
            case "refusal.delta":
                yield from self._refuse(self._items.index_in(payload), _delta(payload))
            case "function_call_arguments.delta":
                yield from self._arguments(self._items.index_in(payload), _delta(payload))
            case "completed" | "incomplete" | "failed" | "done" | "cancelled" as status:
                yield from self._end({"status": status, **payload.get("response", {})})
            case "error":
                raise FailedAnswer({key: value for key, value in payload.items() if key != "type"})
            case name if name.startswith("reasoning") and name.endswith(".delta"):
                part = ("summary", payload.get("summary_index")) if "summary" in name else ("content", None)
                yield from self._think(self._items.index_in(payload), part, _delta(payload))
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
        begun = BegunItem(str(item.get("type")), string(item.get("id")), self._here())
        self._items.add(index, begun)
        if begun.kind == "message":
            yield from self._begin_message(item.get("phase"))
        elif begun.kind == "function_call":
            yield from self._name(begun, item)

    def _begin_message(self, phase: Any) -> Iterator[ModelChunk]:
        phase = phase if phase in PHASES else ""
        if phase != self._phase:
            self._phase = phase
            is_shown = bool(self._thought or False not in self._heads) and not self._is_late()
            yield from self._sign(write_phase(phase, self._here()), late=not is_shown)
        if self._messages and self._characters:
            yield self._write(BETWEEN)
        self._messages += 1

    def _name(self, begun: BegunItem, item: dict[str, Any], *, is_done: bool = False) -> Iterator[ModelChunk]:
        """Return the first chunk of a call as soon as its name is known."""
        name = string(item.get("name"))
        if begun.call is None and (name or is_done):
            begun.call, self._calls = self._calls, self._calls + 1
            call_id = string(item.get("call_id")) or string(item.get("id"))
            yield ToolCallChunk(begun.call, call_id=call_id, name=name)

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
            yield from self._name(begun, item, is_done=True)
            yield from self._arguments(index, _written(item.get("arguments"))[begun.read :])
        elif begun.kind == "reasoning":
            yield from self._complete_reasoning(index, item)

    def _complete_message(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        skipped = self._items[index].read
        for part in item.get("content") or []:
            text = string(part.get("text")) or string(part.get("refusal"))
            rest, skipped = text[skipped:], max(skipped - len(text), 0)
            if part.get("type") == "refusal":
                yield from self._refuse(index, rest)
            else:
                yield from self._text(index, rest, part.get("logprobs") if rest == text else None)

    def _complete_reasoning(self, index: int, item: dict[str, Any]) -> Iterator[ModelChunk]:
        begun = self._items[index]
        if not begun.read:
            for place, part in enumerate(item.get("summary") or []):
                yield from self._think(index, ("summary", place), string(part.get("text")))
        if not begun.read:
            for part in item.get("content") or []:
                yield from self._think(index, ("content", None), string(part.get("text")))
        is_summary = begun.part is not None and begun.part[0] == "summary"
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


def _written(arguments: Any) -> str:
    """Return the JSON of a call's arguments, which some servers send as an object."""
    return string(arguments) if arguments is None or isinstance(arguments, str) else json.dumps(arguments)
