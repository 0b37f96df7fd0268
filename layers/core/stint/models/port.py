"""The port every model adapter implements."""

from collections.abc import AsyncIterator
from typing import Protocol

from stint.domain.inference import (
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
)


class ChatModel(Protocol):
    """A model provider."""

    def check(self, request: InferenceRequest) -> None:
        """Refuse parameters that this provider lacks, before anything is sent. The messages are not checked.

        `parallel_tool_calls` false is never refused, because the reader of the answer uses only the first call.

        Raises:
            InvalidRequest: `param` names the field of the request.
        """
        ...

    def stream(self, request: InferenceRequest) -> AsyncIterator[ModelChunk]:
        """Start a model call, and yield its chunks. The first may be `Accepted`, the last is `Finished`.

        The call starts with the first `anext`. Closing the iterator (`aclose`) ends it.

        Raises:
            ModelError: the provider failed or broke its protocol; RateLimited or ModelOverloaded if it cannot answer
                now, ContextLengthExceeded if the messages do not fit, ModelUnauthorized if it refuses this server.
                Calls are retried only before the first chunk.
            InvalidRequest: the provider refuses the request; `param` is the field as chat completions name it.
        """
        ...

    async def count_tokens(self, request: InferenceRequest) -> int:
        """Count the input tokens of a request: messages, tools and response format.

        Raises:
            NotSupported: neither the provider nor the model can count them.
            InvalidRequest, ModelError: as `stream`.
        """
        ...


async def close_chunks(chunks: AsyncIterator[ModelChunk]) -> None:
    """End a model's answer. An iterator without `aclose` ends by itself."""
    aclose = getattr(chunks, "aclose", None)
    if aclose is not None:
        await aclose()


def characters_of(chunk: ModelChunk) -> int:
    """Return the number of characters of a piece of an answer."""
    return len(words_of(chunk))


def words_of(chunk: ModelChunk) -> str:
    """Return the words of a piece of an answer; empty if it has none."""
    match chunk:
        case TextChunk(text=text) | ReasoningChunk(text=text) | RefusalChunk(text=text):
            return text
        case ToolCallChunk(name=name, arguments=arguments):
            return name + arguments
    return ""
