"""Reading of the response to a chat completions request: an event stream, one JSON document, or an error."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx
from httpx_sse import EventSource, ServerSentEvent

from stint.domain.errors import ModelError
from stint.domain.inference import Accepted, ModelChunk
from stint.domain.json_text import parse_leniently
from stint.models.openai.answer import ChatCompletionReader
from stint.providers.openai.errors import ErrorReader, ProviderFailure

DRAIN_SECONDS = 0.2


async def read_response(
    response: httpx.Response, answer: ChatCompletionReader, errors: ErrorReader
) -> AsyncGenerator[ModelChunk, None]:
    """Yield the chunks of a response without the end, which `answer` makes.

    Servers that ignore `stream: true` answer with one JSON document, which is accepted, too.

    Raises:
        ProviderFailure: an error status, an error in the stream, invalid JSON, or an interrupted stream.
    """
    response.encoding = "utf-8"  # whatever is declared: httpx would use any codec of Python
    if not response.is_success:
        body = (await response.aread()).decode(errors="replace")
        raise errors.read(response.status_code, body, response.headers)
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if kind == "application/json":
        yield Accepted()
        for chunk in _feed(answer, (await response.aread()).decode(errors="replace"), errors):
            yield chunk
    elif kind == "text/event-stream":
        yield Accepted()
        async with aclosing(_read_events(response, answer, errors)) as chunks:
            async for chunk in chunks:
                yield chunk
    else:
        sent, setting = kind or "no content type", errors.settings.base_url
        message = f"The model's provider sent {sent}, not an event stream (check {setting})"
        raise ProviderFailure(ModelError(message, upstream_status=response.status_code))


async def _read_events(
    response: httpx.Response, answer: ChatCompletionReader, errors: ErrorReader
) -> AsyncGenerator[ModelChunk, None]:
    async with aclosing(EventSource(response).aiter_sse()) as events:
        async for event in events:
            if event.data.strip() == "[DONE]":
                await _drain(events)
                return
            if event.data:
                for chunk in _feed(answer, event.data, errors):
                    yield chunk
    if not answer.is_finished:
        raise ProviderFailure(ModelError("The provider's answer was interrupted"), may_repeat=True)


async def _drain(events: AsyncGenerator[ServerSentEvent, None]) -> None:
    """Read the body to its end, so that the connection can be reused."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass
    except (TimeoutError, httpx.RequestError):
        return


def _feed(answer: ChatCompletionReader, text: str, errors: ErrorReader) -> list[ModelChunk]:
    try:
        payload = parse_leniently(text)
    except ValueError as error:
        raise ProviderFailure(ModelError(f"The model's provider sent invalid JSON: {text[:100]!r}")) from error
    if isinstance(payload, dict) and (payload.get("error") or payload.get("object") == "error"):
        raise errors.read(None, text, {})
    try:
        return list(answer.feed(payload))
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ProviderFailure(
            ModelError(f"The model's provider sent JSON that is not a chat completion: {text[:100]!r}")
        ) from error
