"""Responses to calls: a stream with progress and the result, or one JSON document.

An error before the first event is an error of the protocol. After it, a failed turn is a result. If the client of the
newer revision closes its stream, its turn is cancelled where that is seen (docs/protocols.md).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from fastapi import Response
from pydantic import SerializeAsAny
from starlette.background import BackgroundTask

from stint.dataclasses import dataclass
from stint.domain.errors import StintError
from stint.domain.llama_stack.turns import Turn
from stint.domain.schema import Schema
from stint.http.json_rpc import (
    UNAVAILABLE,
    JsonRpcError,
    MessageId,
    answer_result,
    encode_error,
    encode_notification,
    encode_result,
)
from stint.http.sse import encode_frame
from stint.http.streaming import buffer_document, stream_frames
from stint.mcp_server.calls import StartedCall
from stint.mcp_server.progress import CallProgress
from stint.mcp_server.results import failed_result
from stint.mcp_server.schemas import ServedResult, Token

PROGRESS = "notifications/progress"
STILL_RUNS = (
    "The turn still runs, and this stream ends before it. Repeat the call with the same Idempotency-Key to get its "
    "result, or read the session."
)

WriteResult = Callable[[Turn], Awaitable[ServedResult]]


class ResultMessage(Schema):
    """A message with a result, as the document of a response."""

    message_id: MessageId
    result: SerializeAsAny[Schema]

    def to_json(self, *, exclude_none: bool = False) -> bytes:  # noqa: ARG002 - results have no null fields
        return encode_result(self.message_id, self.result)


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """How a call is answered. `cancel` cancels its turn; None for a call that goes on without its client."""

    message_id: MessageId
    token: Token | None
    write: WriteResult
    finish_result: Callable[[ServedResult], ServedResult]
    heartbeat_seconds: float
    cancel: Callable[[], Awaitable[None]] | None

    async def respond(self, call: StartedCall, *, stream: bool) -> Response:
        """Return the response of a call whose turn begins. Raises StintError if the turn is refused."""
        try:
            response = await (self.stream(call) if stream else self.buffer(call))
        except StintError as error:
            if error.turn_id is None:
                raise
            response = answer_result(self.message_id, self.finish_result(failed_result(error, call.session_id)))

        async def finish() -> None:
            await call.handle.finish()
            await call.handle.send_trace()

        response.background = BackgroundTask(finish)
        return response

    async def stream(self, call: StartedCall) -> Response:
        events = await call.handle.open(self.heartbeat_seconds)
        return stream_frames(self.encode(CallProgress(self.token).follow(events)), self.heartbeat_seconds)

    async def encode(self, messages: AsyncGenerator[object, None]) -> AsyncGenerator[bytes, None]:
        """Yield the frames of a stream: progress, and the result or an error."""
        ended = False
        try:
            async with aclosing(messages):
                async for message in messages:
                    if isinstance(message, Turn):
                        ended = True
                        yield encode_frame(encode_result(self.message_id, await self.show(message)))
                    elif isinstance(message, Schema):
                        yield encode_frame(encode_notification(PROGRESS, message))
        except Exception as error:  # noqa: BLE001 - once the stream has begun, no status can report it
            ended = True
            yield encode_frame(self.encode_late(error))
        finally:
            if not ended:
                self.note_leaving()

    async def show(self, turn: Turn) -> ServedResult:
        return self.finish_result(await self.write(turn))

    async def buffer(self, call: StartedCall) -> Response:
        async def read_document() -> Schema:
            try:
                turn = await call.handle.outcome()
            except asyncio.CancelledError:
                self.note_leaving()
                raise
            return ResultMessage(message_id=self.message_id, result=await self.show(turn))

        return await buffer_document(
            read_document(),
            self.heartbeat_seconds,
            encode_error=self.encode_late,
            cancel_with_client=self.cancel is not None,
        )

    def encode_late(self, error: Exception) -> bytes:
        """Return the message with an error after the first byte of the response."""
        from stint.services.runs.run_handle import StreamClosed  # noqa: PLC0415 - few streams end before their turn

        if isinstance(error, StreamClosed):
            error = JsonRpcError(UNAVAILABLE, STILL_RUNS, code="deadline_exceeded")
        return encode_error(self.message_id, error)

    def note_leaving(self) -> None:
        """Cancel the turn of a client that has left, in a task of its own: the response is being cancelled."""
        if self.cancel is not None:
            task = asyncio.create_task(ignore_errors(self.cancel))
            LEAVING.add(task)
            task.add_done_callback(LEAVING.discard)


LEAVING: set["asyncio.Task[None]"] = set()
"""Tasks that nothing else refers to, which could be collected before they end."""


async def ignore_errors(cancel: Callable[[], Awaitable[None]]) -> None:
    with suppress(StintError):  # the turn may have ended meanwhile
        await cancel()


def accepts_stream(accept: str) -> bool:
    """Return whether a client reads streams. One without the header gets a document."""
    for part in accept.lower().split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        if kind == "text/event-stream" and not {"q=0", "q=0.0", "q=0.00", "q=0.000"} & set(parameters):
            return True
    return False
