"""The route of chat completions, which stream."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from stint.domain.errors import StintError, Unexpected
from stint.domain.inference import Usage
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_output import ChatCompletion, ChatCompletionChunk
from stint.http.deadline import deadline_of
from stint.http.dependencies import response_services_of
from stint.http.errors import body_of
from stint.http.heartbeats import with_heartbeats
from stint.http.requests import StrictRoute
from stint.http.sse import COMMENT, DONE, escape_line_breaks
from stint.http.streaming import SPACE
from stint.observability import Observation
from stint.services.chat.chat import Chat, ChatRun
from stint.services.openai_api import ResponseServices

logger = logging.getLogger(__name__)

CHUNK_SCHEMA = {
    "anyOf": [{"$ref": "#/components/schemas/ChatCompletionChunk"}, {"$ref": "#/components/schemas/StreamError"}]
}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": CHUNK_SCHEMA}},
        "description": "The completion, or its chunks.",
    }
}
Access = Annotated[ResponseServices, Depends(response_services_of)]
Chunks = AsyncGenerator[ChatCompletionChunk, None]

router = APIRouter(tags=["Chat"], route_class=StrictRoute)


@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=STREAMS)
async def create_chat_completion(body: ChatCompletionRequest, request: Request, services: Access) -> Response:
    """Complete a chat; with `stream` true the answer is a stream of chunks. Nothing is stored."""
    run = await services.chat.start(body, deadline_of(request))
    chunks = follow(request.scope["stint.observation"], services.chat, run)
    answer = answer_streaming if body.stream else answer_buffered
    return await answer(run, chunks, services.heartbeat_seconds)


async def follow(observation: Observation, chat: Chat, run: ChatRun) -> Chunks:
    """Pass a completion's chunks on, and measure them."""
    observation.count("ChatCompletions")
    first = True
    async with aclosing(chat.run(run)) as chunks:
        async for chunk in chunks:
            if first:
                observation.time_first_event()
                first = False
            yield chunk
    observation.count_tokens(run.completion.usage or Usage(), Usage())


async def answer_streaming(_: ChatRun, chunks: Chunks, heartbeat_seconds: float) -> Response:
    """Answer with server-sent events, and a comment whenever the model is silent for long.

    Raises:
        StintError: the completion failed before the first byte left.
    """
    first = asyncio.create_task(read_one(chunks))
    done, _pending = await asyncio.wait({first}, timeout=heartbeat_seconds)
    if done:
        first.result()
    return StreamingResponse(
        with_heartbeats(encode_all(first, chunks), COMMENT, heartbeat_seconds),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def answer_buffered(run: ChatRun, chunks: Chunks, heartbeat_seconds: float) -> Response:
    """Answer with the completion; one that takes long begins with spaces, which JSON ignores.

    Raises:
        StintError: the completion failed before the first space left.
    """
    end = asyncio.create_task(read_all(chunks))
    done, _ = await asyncio.wait({end}, timeout=heartbeat_seconds)
    if not done:
        text = with_heartbeats(encode_whole(run, end), SPACE, heartbeat_seconds)
        return StreamingResponse(text, media_type="application/json")
    end.result()
    return Response(run.completion.whole().to_json(), media_type="application/json")


async def read_one(chunks: Chunks) -> ChatCompletionChunk:
    return await anext(chunks)


async def read_all(chunks: Chunks) -> None:
    async for _ in chunks:
        pass


async def encode_all(first: "asyncio.Task[ChatCompletionChunk]", chunks: Chunks) -> AsyncIterator[bytes]:
    """Write chunks, or an error in place of the next one, and the end of the stream behind them."""
    try:
        yield frame((await first).to_json())
        async with aclosing(chunks):
            async for chunk in chunks:
                yield frame(chunk.to_json())
    except Exception as error:  # noqa: BLE001 - the edge: once the stream has begun, no status can tell of it
        yield frame(json.dumps(explain(error)).encode())
    yield DONE


async def encode_whole(run: ChatRun, end: "asyncio.Task[None]") -> AsyncIterator[bytes]:
    """Write the completion; one that failed has no choices, and bears the error."""
    yield SPACE
    try:
        await end
        yield run.completion.whole().to_json()
    except Exception as error:  # noqa: BLE001 - as above
        failed = run.completion.whole().model_copy(update={"choices": []})
        yield json.dumps(failed.model_dump(mode="json") | explain(error)).encode()


def explain(error: Exception) -> dict[str, Any]:
    """Give an error as the body that it would have had with a status."""
    if not isinstance(error, StintError):
        logger.error("An unexpected error occurred in a stream", exc_info=error)
        error = Unexpected()
    return {"error": body_of(error), "detail": error.message}


def frame(data: bytes) -> bytes:
    return b"data: %b\n\n" % escape_line_breaks(data)
