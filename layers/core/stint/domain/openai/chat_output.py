"""Chat completions as they are returned: whole, or in chunks.

https://platform.openai.com/docs/api-reference/chat/object and .../chat/streaming
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.inference import TokenLogprob, Usage, WrittenTokens
from stint.domain.openai.chat_input import ChatToolCall
from stint.domain.schema import Schema

ChatFinish = Literal["stop", "length", "tool_calls", "content_filter"]


class PromptTokensDetails(Schema):
    cached_tokens: int = 0
    cache_write_tokens: WrittenTokens = 0


class CompletionTokensDetails(Schema):
    reasoning_tokens: int = 0


class CompletionUsage(Schema):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails

    @classmethod
    def of(cls, usage: Usage) -> "CompletionUsage":
        return cls(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            prompt_tokens_details=PromptTokensDetails(
                cached_tokens=usage.cached_tokens, cache_write_tokens=usage.cache_write_tokens
            ),
            completion_tokens_details=CompletionTokensDetails(reasoning_tokens=usage.reasoning_tokens),
        )


class TopLogprob(Schema):
    token: str
    logprob: float
    bytes: list[int] | None = None


class ChatTokenLogprob(TopLogprob):
    """The log probability of a token, and those of the most likely tokens at its position."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(Schema):
    content: list[ChatTokenLogprob]
    refusal: None = None

    @classmethod
    def of(cls, logprobs: Sequence[TokenLogprob]) -> "ChatLogprobs | None":
        """Return the log probabilities of a text; None if there are none."""
        if not logprobs:
            return None
        return cls(content=[token_logprob_of(each) for each in logprobs])


def token_logprob_of(each: TokenLogprob) -> ChatTokenLogprob:
    top = [TopLogprob(token=other.token, logprob=other.logprob, bytes=bytes_of(other)) for other in each.top]
    return ChatTokenLogprob(token=each.token, logprob=each.logprob, bytes=bytes_of(each), top_logprobs=top)


def bytes_of(each: TokenLogprob) -> list[int]:
    return list(each.token.encode(errors="replace") if each.utf8 is None else each.utf8)


class ChatAnswer(Schema):
    """The model's message. `content` is null if it only calls functions, or refuses.

    `reasoning_content` is its reasoning, under the name that DeepSeek and vLLM use.
    """

    role: Literal["assistant"] = "assistant"
    content: str | None = None
    reasoning_content: Omitted[str] = None
    refusal: str | None = None
    annotations: list[dict[str, Any]] = Field(default_factory=list)
    tool_calls: Omitted[list[ChatToolCall]] = None


class ChatChoice(Schema):
    index: int = 0
    message: ChatAnswer
    finish_reason: ChatFinish
    logprobs: ChatLogprobs | None = None


class ChatCompletion(Schema):
    """A whole completion. `created` is in seconds since 1970."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: CompletionUsage | None = None
    service_tier: str = "default"
    metadata: Omitted[dict[str, str]] = None
    system_fingerprint: str | None = None


class FunctionDelta(Schema):
    name: Omitted[str] = None
    arguments: Omitted[str] = None


class ToolCallPiece(Schema):
    """A piece of a call. The first one of an `index` has id, type and name."""

    index: int
    id: Omitted[str] = None
    type: Omitted[Literal["function"]] = None
    function: FunctionDelta


class ChatDelta(Schema):
    role: Omitted[Literal["assistant"]] = None
    content: Omitted[str] = None
    reasoning_content: Omitted[str] = None
    refusal: Omitted[str] = None
    tool_calls: Omitted[list[ToolCallPiece]] = None


class ChunkChoice(Schema):
    index: int = 0
    delta: ChatDelta
    finish_reason: ChatFinish | None = None
    logprobs: ChatLogprobs | None = None


class ChatCompletionChunk(Schema):
    """A piece of a completion. The one with the usage has no choices."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Omitted[CompletionUsage] = None
    service_tier: str = "default"
    system_fingerprint: str | None = None
    obfuscation: Omitted[str] = None
