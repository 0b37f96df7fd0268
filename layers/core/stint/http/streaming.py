"""The two forms of a run's response: a stream of server-sent events, or one JSON document that may take long."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from fastapi import Response

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.schema import Schema
from stint.http.errors import late_document_of
from stint.http.heartbeats import HeartbeatResponse
from stint.http.sse import COMMENT, DONE, encode_frame

T = TypeVar("T")
SPACE = b" "
"""Padding that JSON allows before a document."""


class FailableRun(Protocol):
    """A run that raises nothing. After a failure, `error` is set, and the last event has it, too."""

    error: StintError | None


def reraise(error: Exception) -> NoReturn:
    raise error


@dataclass(frozen=True, slots=True)
class StreamFormat(Generic[T]):
    """The stream format of one API.

    `encode` encodes an event; `end` follows the last one. `encode_error` encodes an exception and the end of the
    stream; by default the connection is cut. `comment` is the heartbeat.
    """

    encode: Callable[[T], bytes]
    end: tuple[bytes, ...] = ()
    encode_error: Callable[[Exception], Iterable[bytes]] = reraise
    comment: bytes = COMMENT


def encode_schema(event: Schema) -> bytes:
    return encode_frame(event.to_json())


def encode_failure(error: Exception) -> bytes:
    """Write an error in place of a document whose response has begun."""
    return json.dumps(late_document_of(error)).encode()


def encode_last_frame(error: Exception) -> tuple[bytes, ...]:
    """Write an error as the last event of a stream."""
    return (encode_frame(encode_failure(error)),)


def encode_last_frames(error: Exception) -> tuple[bytes, ...]:
    """Write an error in place of the next chunk, and the end of OpenAI's stream."""
    return (*encode_last_frame(error), DONE)


CHUNKS: StreamFormat[Any] = StreamFormat(encode_schema, end=(DONE,), encode_error=encode_last_frames)
"""The format of the chunks of OpenAI's completions."""


async def stream_events(
    events: AsyncGenerator[T, None], form: StreamFormat[T], heartbeat_seconds: float, run: FailableRun | None = None
) -> Response:
    """Return a response of server-sent events after the first one, or after `heartbeat_seconds`.

    Raises:
        StintError: the run failed before its first event.
    """

    async def read_first() -> T:
        return await anext(events)

    first = asyncio.create_task(read_first())
    done, _ = await asyncio.wait({first}, timeout=heartbeat_seconds)
    if run is not None and run.error is not None:
        await first
        async for _event in events:
            pass
        raise run.error
    if done:
        first.result()
    return stream_frames(encode_events(chain(first, events), form), heartbeat_seconds, form.comment)


def stream_frames(frames: AsyncGenerator[bytes, None], heartbeat_seconds: float, comment: bytes = COMMENT) -> Response:
    """Return a response of server-sent events at once, with a comment after every `heartbeat_seconds` of silence."""
    headers = {"x-accel-buffering": "no"}
    return HeartbeatResponse(frames, comment, heartbeat_seconds, "text/event-stream", headers)


async def chain(first: "asyncio.Task[T]", rest: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the event that is being read, and those after it."""
    async with aclosing(rest):
        yield await first
        async for event in rest:
            yield event


async def encode_events(events: AsyncGenerator[T, None], form: StreamFormat[T]) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a whole stream."""
    try:
        async with aclosing(events):
            async for event in events:
                yield form.encode(event)
    except Exception as error:  # noqa: BLE001 - once the stream has begun, no status can report it
        for frame in form.encode_error(error):
            yield frame
        return
    for frame in form.end:
        yield frame


async def buffer_document(
    work: Coroutine[Any, Any, Schema],
    heartbeat_seconds: float,
    run: FailableRun | None = None,
    *,
    encode_error: Callable[[Exception], bytes] = reraise,
    cancel_with_client: bool = False,
) -> Response:
    """Return a response with the document that `work` returns. Spaces before a slow one keep the connection open.

    `encode_error` encodes an exception after the first space. With `cancel_with_client`, the work is cancelled when
    the client disconnects.

    Raises:
        StintError: the work failed before the first space.
    """
    document = asyncio.create_task(work)
    done, _ = await asyncio.wait({document}, timeout=heartbeat_seconds)
    if not done:
        late = encode_late(document, encode_error, cancel_with_client=cancel_with_client)
        return HeartbeatResponse(late, SPACE, heartbeat_seconds, "application/json")
    schema = document.result()
    if run is not None and run.error is not None:
        raise run.error
    return Response(schema.to_json(), media_type="application/json")


async def encode_late(
    document: "asyncio.Task[Schema]", encode_error: Callable[[Exception], bytes], *, cancel_with_client: bool
) -> AsyncGenerator[bytes, None]:
    """Yield a space at once, and then the document."""
    yield SPACE
    try:
        schema = await (document if cancel_with_client else asyncio.shield(document))
        yield schema.to_json()
    except Exception as error:  # noqa: BLE001 - as above
        yield encode_error(error)
