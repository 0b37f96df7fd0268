"""Events as server-sent events, in the form of Llama Stack's agents streams."""

import json
from collections.abc import AsyncIterator

from stint.domain.llama_stack.events import Event, Payload, TurnFailed
from stint.domain.schema import Schema
from stint.http.errors import ErrorObject, body_of

COMMENT = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
"""The mark at the end of the streams of OpenAI's API."""

STREAM_SCHEMA = {"anyOf": [{"$ref": "#/components/schemas/StreamChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
"""What the data of each event is, for the OpenAPI document."""

LINE_BREAKS = {character.encode(): b"\\u%04x" % ord(character) for character in "\u0085\u2028\u2029"}


class StreamEvent(Schema):
    payload: Payload


class StreamChunk(Schema):
    """The data of an event."""

    event: StreamEvent


class StreamError(Schema):
    """The data of the last event of a turn that failed."""

    error: ErrorObject


def encode(event: Event) -> bytes:
    """Write one event: a `data:` line and an empty line, nothing else (no `event:`, `id:` or `[DONE]`)."""
    if isinstance(event, TurnFailed):
        text = json.dumps({"error": body_of(event.error)}, ensure_ascii=False).encode()
    else:
        text = b'{"event":{"payload":%b}}' % event.to_json()
    return b"data: %b\n\n" % escape_line_breaks(text)


def escape_line_breaks(text: bytes) -> bytes:
    """Escape what JSON leaves as it is and some readers take for the end of a line."""
    for character, escaped in LINE_BREAKS.items():
        text = text.replace(character, escaped)
    return text


async def encode_all(events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    async for event in events:
        yield encode(event)
