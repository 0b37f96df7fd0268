"""Conversion of chat completions chunks to model chunks.

Compatible servers differ from OpenAI's form in many small ways. Each is read where it is unambiguous; a field of
another type counts as absent.
"""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.inference import (
    Finished,
    FinishReason,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
    Usage,
)
from stint.models.openai.usage import CHAT_USAGE, MOST_TOKENS, read_usage
from stint.models.port import LEAST_LOGPROB, read_tier

REASONS = {
    "length": FinishReason.length,
    "content_filter": FinishReason.content_filter,
    "tool_calls": FinishReason.tool_calls,
    "function_call": FinishReason.tool_calls,
}


@dataclass(slots=True)
class _Call:
    index: int
    key: int | None
    call_id: str = ""
    name: str = ""
    announced: bool = False
    has_arguments: bool = False


class ChatCompletionReader:
    """One answer, read chunk by chunk.

    It reads OpenAI's documented form and the variants of compatible servers: calls without an index or an id, all calls
    with index 0, names in pieces or repeated, arguments as an object, usage in any chunk. Reasoning is in
    `reasoning_content` (DeepSeek, Moonshot, earlier vLLM), in `reasoning` (vLLM, OpenRouter, Ollama), or in a part of
    the content (Mistral).
    """

    kind = "chat completion"
    may_end_with_done = True
    has_begun = False

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._last_of: dict[int | None, _Call] = {}
        self._ids: set[str] = set()
        self._reason: str | None = None
        self._usage: Usage | None = None
        self._tier: str | None = None
        self._logprobs: list[TokenLogprob] = []

    @property
    def is_finished(self) -> bool:
        """Return whether the server sent a finish reason. Only the usage can follow it."""
        return self._reason is not None

    def feed(self, payload: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the JSON of one chunk, or of a whole answer that was not streamed."""
        if isinstance(payload.get("usage"), dict):
            self._usage = read_usage(payload["usage"], CHAT_USAGE)
        self._tier = read_tier(payload.get("service_tier")) or self._tier
        for choice in payload.get("choices") or []:
            # Only one answer is asked for. A server that sends more would mix their texts.
            if choice.get("index") not in (0, None):
                continue
            delta = choice.get("delta") or choice.get("message") or {}
            self._logprobs += read_logprobs(choice.get("logprobs"))
            yield from self._texts(delta)
            for piece in delta.get("tool_calls") or []:
                yield from self._feed_call(piece)
            self._reason = read_text(choice.get("finish_reason")) or self._reason

    def finish(self) -> Iterator[ModelChunk]:
        """Return the pending chunks and the end."""
        for call in self._calls:
            yield from self._announce(call)
        reason = REASONS.get(self._reason or "stop", FinishReason.stop)
        if reason in (FinishReason.stop, FinishReason.tool_calls):
            # Servers report `stop` with calls, and `tool_calls` without: what has arrived decides.
            reason = FinishReason.tool_calls if self._calls else FinishReason.stop
        yield Finished(reason, self._usage, self._tier)

    def _texts(self, delta: dict[str, Any]) -> Iterator[ModelChunk]:
        """Yield the texts of a delta. Log probabilities of tokens without text belong to the text that follows."""
        content = delta.get("content")
        parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
        text = "".join(read_text(part.get("text")) for part in parts) if parts else read_text(content)
        thinking = "".join(map(_thought, parts))
        if thought := read_text(delta.get("reasoning_content")) or read_text(delta.get("reasoning")) or thinking:
            yield ReasoningChunk(text=thought)
        if text:
            logprobs, self._logprobs = tuple(self._logprobs), []
            yield TextChunk(text, logprobs)
        if refusal := read_text(delta.get("refusal")):
            yield RefusalChunk(refusal)

    def _feed_call(self, piece: dict[str, Any]) -> Iterator[ModelChunk]:
        function = piece.get("function") or {}
        name, call_id, index = read_text(function.get("name")), _identifier(piece.get("id")), piece.get("index")
        call = self._find(index if isinstance(index, int) else None, call_id, name)
        if not call.announced:
            call.call_id = call.call_id or call_id
            call.name += "" if name == call.name else name
        if text := read_arguments(function.get("arguments")):
            yield from self._announce(call)
            call.has_arguments = True
            yield ToolCallChunk(call.index, arguments=text)

    def _find(self, key: int | None, call_id: str, name: str) -> _Call:
        """Find the call of a piece, or start one.

        A piece belongs to the call with its index, or to the last call if it has none. A piece with a name and another
        id always starts a call (Ollama sent every call with index 0), and so does a name without index and id after
        arguments.
        """
        last = self._last_of.get(key) if key is not None else self._calls[-1] if self._calls else None
        other_id = last is not None and call_id not in ("", last.call_id)
        renamed = last is not None and key is None and not call_id and last.has_arguments
        if last is None or (name and ((other_id and last.call_id) or renamed)):
            last = _Call(index=len(self._calls), key=key)
            self._calls.append(last)
            self._last_of[key] = last
        return last

    def _announce(self, call: _Call) -> Iterator[ModelChunk]:
        """Return the first chunk of a call once its name is complete: at its arguments or the answer's end."""
        if call.announced:
            return
        call.announced = True
        if not call.call_id or call.call_id in self._ids:
            call.call_id = f"call_{secrets.token_hex(12)}"
        self._ids.add(call.call_id)
        yield ToolCallChunk(call.index, call_id=call.call_id, name=call.name)


def _thought(part: dict[str, Any]) -> str:
    """Read a part of type thinking, which is a text or a list of texts."""
    thinking = part.get("thinking")
    if isinstance(thinking, list):
        return "".join(read_text(piece.get("text")) for piece in thinking if isinstance(piece, dict))
    return read_text(thinking)


def read_arguments(arguments: Any) -> str:
    """Return the JSON of a call's arguments, which some servers send as an object."""
    if isinstance(arguments, str) or not arguments:
        return read_text(arguments)
    return json.dumps(arguments, ensure_ascii=False)


def read_text(value: Any) -> str:
    """Return a text, and an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _identifier(value: Any) -> str:
    """Read an id. Some servers number the calls."""
    return str(value) if isinstance(value, int) and abs(value) < MOST_TOKENS else read_text(value)


def _to_float(number: int | float) -> float:
    """Return a log probability, which a server may write as an integer of any length."""
    return float(max(min(number, 0), LEAST_LOGPROB)) if isinstance(number, int) else number


def _is_byte(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 256


def read_logprobs(logprobs: Any) -> list[TokenLogprob]:
    """Read the `logprobs` of a choice. Entries of another form are omitted."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    entries = content if isinstance(content, list) else []
    return [read for entry in entries if (read := _read_logprob(entry)) is not None]


def _read_logprob(entry: Any) -> TokenLogprob | None:
    match entry:
        case {"token": str(token), "logprob": int() | float() as logprob}:
            top, utf8 = entry.get("top_logprobs"), entry.get("bytes")
            return TokenLogprob(
                token,
                _to_float(logprob),
                tuple(utf8) if isinstance(utf8, list) and all(map(_is_byte, utf8)) else None,
                tuple(filter(None, map(_read_logprob, top))) if isinstance(top, list) else (),
            )
    return None
