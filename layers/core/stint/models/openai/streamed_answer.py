"""The answer to a model call: an event stream, one JSON document, or an error.

Both of OpenAI's APIs are read here up to their JSON, which an `AnswerReader` converts. It decides when an answer has
ended; a connection that fails before makes an error, and after makes no difference.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Protocol

from stint.domain.errors import ModelError
from stint.domain.inference import Accepted, ModelChunk
from stint.domain.json_text import parse_leniently
from stint.providers.openai.errors import ErrorReader, ProviderFailure, ServerSettings
from stint.providers.openai.server import DONE, OpenAIServer, ServerResponse, drain

EVENT_STREAM = "text/event-stream"
JSON = "application/json"


class FailedAnswer(Exception):
    """The server reports that an answer failed. `error` is its error object."""

    def __init__(self, error: Any) -> None:
        super().__init__("The answer failed")
        self.error = error


class AnswerReader(Protocol):
    """Reads one answer, piece by piece.

    `kind` is what a piece is, such as `chat completion`. `may_end_with_done`: the event `[DONE]` ends an answer, too,
    before which more may follow the end. `has_begun`: a part of the answer has arrived that is no chunk yet, such as
    reasoning that the model does not show.
    """

    kind: str
    may_end_with_done: bool

    @property
    def has_begun(self) -> bool: ...

    @property
    def is_finished(self) -> bool:
        """Return whether the server has sent the end of the answer."""
        ...

    def feed(self, payload: dict[str, Any]) -> Iterator[ModelChunk]:
        """Read the JSON of one event, or of a whole answer that was not streamed.

        Raises:
            FailedAnswer: the payload is an error.
            AttributeError, TypeError, ValueError: it has another form.
        """
        ...

    def finish(self) -> Iterator[ModelChunk]:
        """Return the pending chunks and the end."""
        ...


async def stream_answer(
    server: OpenAIServer, url: str, body: bytes, answer: AnswerReader
) -> AsyncGenerator[ModelChunk, None]:
    """Send a request, and yield the chunks of its answer.

    Servers that ignore `stream: true` answer with one JSON document, which is accepted, too. What happens to the
    connection after the end of the answer does not matter.

    Raises:
        ProviderFailure: there is no response, or it is an error, invalid JSON, or an interrupted stream.
    """
    try:
        async with server.open("POST", url, body, EVENT_STREAM) as response:
            await response.check_success()
            _check_content_type(response, server.settings)
            yield Accepted()
            async with aclosing(_read_payloads(response, answer)) as payloads:
                async for text in payloads:
                    for chunk in _feed(answer, text, response.errors):
                        yield chunk
    except ProviderFailure as failure:
        # The usage may be missing then, but the answer is whole.
        if not (failure.of_connection and answer.is_finished):
            raise
    for chunk in answer.finish():
        yield chunk


def _check_content_type(response: ServerResponse, settings: ServerSettings) -> None:
    if response.content_type not in (JSON, EVENT_STREAM):
        sent = response.content_type or "no content type"
        message = f"The model's provider sent {sent}, not an event stream (check {settings.base_url})"
        raise ProviderFailure(ModelError(message, upstream_status=response.status))


async def _read_payloads(response: ServerResponse, answer: AnswerReader) -> AsyncGenerator[str, None]:
    if response.content_type == JSON:
        yield await response.read()
        if answer.is_finished or answer.may_end_with_done:
            return
        raise ProviderFailure(ModelError(f"The model's provider sent JSON that is not a {answer.kind}"))
    async with aclosing(response.events()) as events:
        async for data in events:
            if data == DONE and answer.may_end_with_done:
                return
            if data != DONE:
                yield data
            if answer.is_finished and not answer.may_end_with_done:
                await drain(events)
                return
    if not answer.is_finished:
        raise ProviderFailure(ModelError("The provider's answer was interrupted"), may_repeat=True)


def _feed(answer: AnswerReader, text: str, errors: ErrorReader) -> list[ModelChunk]:
    try:
        payload = parse_leniently(text)
    except ValueError as error:
        raise ProviderFailure(ModelError(f"The model's provider sent invalid JSON: {text[:100]!r}")) from error
    if isinstance(payload, dict) and (payload.get("error") or payload.get("object") == "error"):
        raise errors.read(None, text, {})
    try:
        return list(answer.feed(payload))
    except FailedAnswer as failed:
        raise errors.read(None, json.dumps({"error": failed.error}), {}) from None
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ProviderFailure(
            ModelError(f"The model's provider sent JSON that is not a {answer.kind}: {text[:100]!r}")
        ) from error
