"""Conversion of ConverseStream events to model chunks.

An answer is a row of content blocks with indexes that all kinds share, while chunks number calls alone: `_calls` maps
one to the other. The events:

    contentBlockStart    of a call: its id and name
    contentBlockDelta    a piece of text, of reasoning, or of a call's arguments
    messageStop          the reason. Without it the answer was interrupted, however complete it looks
    metadata             the usage and the tier, after the end

boto3 checks neither the types of fields nor that required ones exist. So a wrong one raises what Python raises, and
`explain` makes an error of the provider of it (`MALFORMED`).
"""

from collections.abc import Iterator
from typing import Any

from stint.domain.errors import ContextLengthExceeded, ModelError
from stint.domain.inference import Finished, FinishReason, ModelChunk, TextChunk, ToolCallChunk, Usage
from stint.models.bedrock.reasoning import ReasoningReader
from stint.models.port import read_tier

REASONS = {
    "end_turn": FinishReason.stop,
    "stop_sequence": FinishReason.stop,
    "tool_use": FinishReason.tool_calls,
    "max_tokens": FinishReason.length,
    "guardrail_intervened": FinishReason.content_filter,
    "content_filtered": FinishReason.content_filter,
}


class ConverseAnswer:
    """One answer, read event by event (API reference, ConverseStreamOutput).

    `tier` is the service tier that was asked for. Bedrock refuses a tier that a model lacks, so this one has served
    unless the answer names another.
    """

    def __init__(self, tier: str | None = None) -> None:
        self._tier = tier
        self._thoughts = ReasoningReader()
        self._calls: dict[int, int] = {}
        self._reason: FinishReason | None = None
        self._usage: Usage | None = None

    def feed(self, event: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read one event.

        Raises:
            ModelError: the model's output is malformed; ContextLengthExceeded if its context is full.
            LookupError: the event lacks a required field (boto3 returns the readable part of a damaged one).
            AttributeError, TypeError, ValueError: a field has the wrong type.
        """
        match event:
            case {"contentBlockStart": {"contentBlockIndex": block, "start": {"toolUse": call}}}:
                index = self._calls.setdefault(block, len(self._calls))
                yield ToolCallChunk(index, call_id=_text(call["toolUseId"]), name=_text(call["name"]))
            case {"contentBlockDelta": content}:
                yield from self._feed_delta(content["contentBlockIndex"], content["delta"])
            case {"messageStop": stop}:
                self._reason = _read_reason(stop["stopReason"])
            case {"metadata": metadata}:
                self._usage = _read_usage(metadata["usage"])
                self._tier = read_tier(metadata.get("serviceTier", {}).get("type")) or self._tier

    def _feed_delta(self, block: int, delta: dict[str, Any]) -> Iterator[ModelChunk]:
        if delta.get("text"):
            yield TextChunk(_text(delta["text"]))
        if "reasoningContent" in delta:
            yield self._thoughts.read(block, delta["reasoningContent"])
        if "toolUse" in delta and delta["toolUse"]["input"]:
            yield ToolCallChunk(self._calls[block], arguments=_text(delta["toolUse"]["input"]))

    def finish(self) -> Finished:
        """Return the last chunks.

        Raises:
            ModelError: the stream ended before the message did.
        """
        if self._reason is None:
            raise ModelError("Bedrock's answer was interrupted")
        return Finished(self._reason, self._usage, self._tier)


def _text(value: Any) -> str:
    """Return a text. boto3 does not check the types of an event's fields."""
    if not isinstance(value, str):
        raise TypeError
    return value


def _read_usage(usage: dict[str, Any]) -> Usage:
    """Read the usage (API reference, TokenUsage), which counts input that a cache read or wrote separately."""
    cached, added, written = (
        _count(usage.get(name)) for name in ("cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")
    )
    # Elsewhere the input includes what a cache has read or written, as OpenAI counts it.
    read = _count(usage["inputTokens"]) + cached + added
    hour = sum(_count(detail["inputTokens"]) for detail in usage.get("cacheDetails") or [] if detail["ttl"] == "1h")
    return Usage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        cached_tokens=cached,
        cache_write_tokens=added,
        cache_write_1h_tokens=min(hour, added),
    )


def _count(value: Any) -> int:
    if not isinstance(value or 0, int):
        raise TypeError
    return value or 0


def _read_reason(reason: str) -> FinishReason:
    if reason == "model_context_window_exceeded":
        message = "The conversation and its answer exceed the model's context"
        raise ContextLengthExceeded(message, param="messages")
    if reason.startswith("malformed_"):
        raise ModelError(f"The model's answer cannot be read (Bedrock's stop reason is {reason}): try again")
    return REASONS.get(reason, FinishReason.stop)
