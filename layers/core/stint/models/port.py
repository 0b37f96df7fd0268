"""The port every model adapter implements.

The loop knows models only by it: a request goes in, chunks come out. An adapter for one protocol is wrapped by others
that change requests or chunks (`tool_names`, `fetched_images`, `default_parameters`, `metered`), so each of these is a
`ChatModel`, too.

    check      before anything is stored or sent; names the field of the caller's request
    stream     the call is sent at the first `anext`, so that an iterator which is never read costs nothing
    Accepted   at most once, first: the provider has accepted the request. After it no status can be returned
    Finished   exactly once, last. An answer that ends without it was interrupted
    aclose     ends the call: a provider that goes on writes, and charges, for nobody

A provider can send anything, so what is kept of an answer passes `storable_chunk`: no single surrogates, no infinite
numbers, no ids that the header of a tool cannot have.
"""

import math
import re
from collections.abc import AsyncIterator
from typing import Protocol, runtime_checkable

from stint.dataclasses import replace
from stint.domain.errors import NotSupported
from stint.domain.inference import (
    InferenceRequest,
    ModelChunk,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    TokenLogprob,
    ToolCallChunk,
)
from stint.domain.json_text import storable_text

LONGEST_CALL_ID = 64
"""Maximum characters of a call's id that clients of Responses can send back."""

TIER = re.compile(r"[a-z0-9_-]{1,32}")

LEAST_LOGPROB = -9999.0
"""OpenAI's log probability of a very unlikely token, in place of minus infinity, which JSON lacks."""


class CountNeedsAnswer(NotSupported):
    """The provider reports the tokens of a request only together with an answer."""


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
            NotSupported: neither the provider nor the model can count them; CountNeedsAnswer if an answer would.
            InvalidRequest, ModelError: as `stream`.
        """
        ...


@runtime_checkable
class WrappingModel(Protocol):
    """A model that changes the requests or the chunks of another one."""

    wrapped: ChatModel


@runtime_checkable
class ConnectedModel(Protocol):
    """A model that can open, before its first call, what each call needs."""

    async def connect(self, model_id: str) -> None:
        """Make the client, read the key, and open a connection. Raises any error."""
        ...


async def connect(model: ChatModel, model_id: str) -> None:
    """Open what the first call of a model needs, if its adapter can. Raises any error."""
    while isinstance(model, WrappingModel):
        model = model.wrapped
    if isinstance(model, ConnectedModel):
        await model.connect(model_id)


async def close_chunks(chunks: AsyncIterator[ModelChunk]) -> None:
    """End a model's answer. An iterator without `aclose` ends by itself."""
    aclose = getattr(chunks, "aclose", None)
    if aclose is not None:
        await aclose()


def characters_of(chunk: ModelChunk) -> int:
    """Return the number of characters of a piece of an answer."""
    return len(chunk.text if isinstance(chunk, TextChunk) else words_of(chunk))  # nearly all are texts


def words_of(chunk: ModelChunk) -> str:
    """Return the words of a piece of an answer; empty if it has none."""
    match chunk:
        case TextChunk(text=text) | ReasoningChunk(text=text) | RefusalChunk(text=text):
            return text
        case ToolCallChunk(name=name, arguments=arguments):
            return name + arguments
    return ""


def storable_chunk(chunk: ModelChunk) -> ModelChunk:
    """Return a piece of an answer in a form that can be stored, and sent as JSON. An unusable id of a call is empty."""
    match chunk:
        case TextChunk(text=text, logprobs=logprobs):
            storable = storable_text(text)
            is_same = storable is text and not logprobs
            return chunk if is_same else TextChunk(storable, tuple(map(storable_logprob, logprobs)))
        case RefusalChunk(text=text):
            return RefusalChunk(storable_text(text))
        case ReasoningChunk(text=text, signature=signature, redacted=redacted, late=late):
            return ReasoningChunk(storable_text(text), storable_text(signature), storable_text(redacted), late)
        case ToolCallChunk(call_id=call_id, name=name, arguments=arguments):
            return replace(
                chunk,
                call_id=call_id if is_call_id(call_id) else "",
                name=storable_text(name),
                arguments=storable_text(arguments),
            )
    return chunk


def is_call_id(text: str) -> bool:
    """Return whether the id of a call can be sent back by clients and in the headers of tools."""
    return len(text) <= LONGEST_CALL_ID and text.isascii() and text.isprintable()


def storable_logprob(each: TokenLogprob) -> TokenLogprob:
    logprob = each.logprob if math.isfinite(each.logprob) else LEAST_LOGPROB
    return TokenLogprob(storable_text(each.token), logprob, each.utf8, tuple(map(storable_logprob, each.top)))


def read_tier(value: object) -> str | None:
    """Return the service tier that a provider reports, None if it names none."""
    return value if isinstance(value, str) and value != "auto" and TIER.fullmatch(value) else None
