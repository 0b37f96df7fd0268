"""The two forms of a run's response: a stream of server-sent events, or one JSON document that may take long.

Each API has a converter; all of them are written here, from the handle of a run (services/runs/run_handle.py):

| run      | the response with `stream` begins            | the response without `stream`                            |
|----------|----------------------------------------------|----------------------------------------------------------|
| started  | with the first event, or with a heartbeat    | the document; spaces before a slow one                   |
| waiting  | with the first event, or with a heartbeat    | silence until its start, 202 after SILENT_SECONDS        |
| followed | at once                                      | the document; spaces before a slow one                   |
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from typing import Annotated, Any, Generic, NoReturn, TypeVar

from fastapi import Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask
from starlette.types import Send

from stint.caller import find_attempt
from stint.dataclasses import dataclass
from stint.domain.schema import Schema
from stint.http.deadline import deadline_of
from stint.http.dependencies import provider_data_of
from stint.http.errors import late_document_of
from stint.http.json_responses import document
from stint.http.sse import COMMENT, DONE, encode_frame
from stint.services.runs.run_handle import FailableRun, RequestContext, RunHandle, StreamClosed, open_events
from stint.tools.port import ProviderData

logger = logging.getLogger(__name__)

T = TypeVar("T")
E = TypeVar("E")
D = TypeVar("D")
SILENT_SECONDS = 240.0
"""Seconds for which a request without a stream waits. API Gateway closes a connection that is silent for 300 s."""

SPACE = b" "
"""Padding that JSON allows before a document."""


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


SCHEMA_FORMAT: StreamFormat[Any] = StreamFormat(encode_schema, encode_error=encode_last_frame)
"""The format of streams whose events are documents, without an event that ends them."""


def encode_last_frames(error: Exception) -> tuple[bytes, ...]:
    """Write an error in place of the next chunk, and the end of OpenAI's stream."""
    return (*encode_last_frame(error), DONE)


CHUNKS: StreamFormat[Any] = StreamFormat(encode_schema, end=(DONE,), encode_error=encode_last_frames)
"""The format of the chunks of OpenAI's completions."""


async def stream_events(events: AsyncGenerator[T, None], form: StreamFormat[T], heartbeat_seconds: float) -> Response:
    """Return a response of server-sent events after the first one, or after `heartbeat_seconds`.

    Raises:
        StintError: the run failed before its first event.
    """
    opened = await open_events(events, heartbeat_seconds)
    return stream_frames(encode_events(opened, form), heartbeat_seconds, form.comment)


def stream_frames(
    frames: AsyncGenerator[bytes, None],
    heartbeat_seconds: float,
    comment: bytes = COMMENT,
    *,
    ends_at: float | None = None,
) -> StreamingResponse:
    """Return a response of server-sent events at once, with a comment after every `heartbeat_seconds` of silence.

    It is cut at `ends_at`, a time of the event loop's clock, if its client does not read it.
    """
    headers = {"x-accel-buffering": "no"}
    if ends_at is None:
        return HeartbeatResponse(frames, comment, heartbeat_seconds, "text/event-stream", headers=headers)
    limited = LimitedResponse(frames, comment, heartbeat_seconds, "text/event-stream", headers=headers)
    limited.ends_at = ends_at
    return limited


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


@dataclass(frozen=True, slots=True)
class RunFormat(Generic[E, D]):
    """The converter of one API: of the events of a run, of its document, and of an error after the first space."""

    events: StreamFormat[E]
    to_schema: Callable[[D], Schema]
    encode_error: Callable[[Exception], bytes] = reraise


async def answer_run(
    handle: RunHandle[E, D], form: RunFormat[E, D], *, stream: bool, heartbeat_seconds: float, deadline: float
) -> Response:
    """Return the response of a run in the requested form.

    `deadline` is a time of the event loop's clock. Raises StintError if the run is refused or cannot start.
    """
    if stream:
        frames = encode_events(await handle.open(heartbeat_seconds), form.events)
        response: Response = stream_frames(frames, heartbeat_seconds, form.events.comment)
    else:
        silent_until = min(deadline, asyncio.get_running_loop().time() + SILENT_SECONDS)
        waiting = await handle.wait_for_start(silent_until)
        if waiting is not None:
            return document(form.to_schema(waiting), status=202)

        async def read_document() -> Schema:
            return form.to_schema(await handle.outcome())

        response = await buffer_document(read_document(), heartbeat_seconds, handle, encode_error=form.encode_error)

    async def finish() -> None:
        await handle.finish()
        await handle.send_trace()

    response.background = BackgroundTask(finish)
    return response


def encode_stream_error(error: Exception) -> tuple[bytes, ...]:
    """Write an error as the last event of a stream; nothing if the client is to reconnect."""
    return () if isinstance(error, StreamClosed) else encode_last_frame(error)


def context_of(request: Request, keys: ProviderData) -> RequestContext:
    """Return what a request brings to its run besides its body."""
    return RequestContext(deadline_of(request), find_attempt(), keys, request.scope["stint.observation"])


async def request_context_of(request: Request) -> RequestContext:
    return context_of(request, await provider_data_of(request))


RequestContextDep = Annotated[RequestContext, Depends(request_context_of)]


class HeartbeatResponse(StreamingResponse):
    """A streamed response with `heartbeat` after every `seconds` of silence.

    API Gateway cuts a stream after 5 minutes of silence (30 seconds at an edge-optimized endpoint), proxies sooner:
    https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode.html

    Two tasks write to one connection: one sends the chunks, the other sends a heartbeat after each silence. A heartbeat
    between the two halves of a chunk would break the stream, so each write holds a lock. Whoever gets the lock looks at
    the clock again: a chunk may have been sent while the heartbeat waited. The time of a write counts from its end, so
    a client that reads slowly gets no heartbeats on top of a chunk that is still being sent.

        the chunks end               the heartbeats are cancelled, and the response ends
        a chunk or a write fails     both tasks end, and the first error is raised, not a group of errors
        the response is cancelled    both tasks are cancelled; `aclosing` ends the events in each of these cases
    """

    def __init__(
        self,
        chunks: AsyncGenerator[bytes, None],
        heartbeat: bytes,
        seconds: float,
        media_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(chunks, media_type=media_type, headers=headers)
        self.chunks, self.heartbeat, self.seconds = chunks, heartbeat, seconds

    async def stream_response(self, send: Send) -> None:
        """Send the chunks as they arrive. A failure of a heartbeat ends them, too."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        failure: BaseException | None = None
        try:
            await self.send_body(HeartbeatBody(send, self.heartbeat, self.seconds))
        except BaseExceptionGroup as failures:
            failure = failures.exceptions[0]
        if failure is not None:
            raise failure
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_body(self, body: "HeartbeatBody") -> None:
        """Send the chunks in a task, which resumes without the frames of all middleware."""
        async with asyncio.TaskGroup() as group:
            heartbeats = group.create_task(body.send_heartbeats())
            sending = group.create_task(self.send_chunks(body))
            sending.add_done_callback(lambda _: heartbeats.cancel())
        sending.result()

    async def send_chunks(self, body: "HeartbeatBody") -> None:
        async with aclosing(self.chunks) as chunks:
            async for chunk in chunks:
                await body.send_chunk(chunk)


class LimitedResponse(HeartbeatResponse):
    """A response that is cut at a time of the event loop's clock. A client that does not read would keep it open."""

    ends_at: float

    async def stream_response(self, send: Send) -> None:
        try:
            async with asyncio.timeout_at(self.ends_at):
                await super().stream_response(send)
        except TimeoutError:
            logger.warning("A client did not read its stream to the end")


class HeartbeatBody:
    """The body of a response, which gets a heartbeat after each silence. A chunk that is being sent is no silence."""

    def __init__(self, send: Send, heartbeat: bytes, seconds: float) -> None:
        self.send, self.heartbeat, self.seconds = send, heartbeat, seconds
        self.clock = asyncio.get_running_loop().time
        self.sent_at = self.clock()
        self.sending = asyncio.Lock()

    async def send_chunk(self, chunk: bytes) -> None:
        async with self.sending:
            await self.write(chunk)

    async def send_heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self.sent_at + self.seconds - self.clock())
            async with self.sending:
                if self.clock() - self.sent_at >= self.seconds:
                    await self.write(self.heartbeat)

    async def write(self, data: bytes) -> None:
        await self.send({"type": "http.response.body", "body": data, "more_body": True})
        self.sent_at = self.clock()
