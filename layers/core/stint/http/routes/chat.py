"""The route of chat completions, which may stream."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.domain.inference import Usage
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.chat_output import ChatCompletion, ChatCompletionChunk
from stint.http.deadline import deadline_of
from stint.http.errors import late_document_of
from stint.http.openai_dependencies import OpenAIServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import OBJECT, requires
from stint.http.streaming import CHUNKS, buffer_document, stream_events
from stint.observability import Observation
from stint.services.inference.chat.chat import Chat, ChatRun

CHUNK_SCHEMA = {
    "anyOf": [{"$ref": "#/components/schemas/ChatCompletionChunk"}, {"$ref": "#/components/schemas/StreamError"}]
}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": CHUNK_SCHEMA}},
        "description": "The completion, or its chunks.",
    }
}
Chunks = AsyncGenerator[ChatCompletionChunk, None]

router = APIRouter(tags=["Chat"], route_class=StrictRoute)


@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=STREAMS)
@requires("use", repeated=OBJECT)
async def create_chat_completion(
    body: ChatCompletionRequest, request: Request, services: OpenAIServicesDep
) -> Response:
    """Create a chat completion. With `stream` true, the response is a stream of chunks. `store` true stores it."""
    run = await services.chat.start(body, deadline_of(request))
    chunks = yield_chunks(request.scope["stint.observation"], services.chat, run)
    if body.stream:
        return await stream_events(chunks, CHUNKS, services.heartbeat_seconds)
    whole = read_all(run, chunks)
    return await buffer_document(
        whole, services.heartbeat_seconds, encode_error=partial(encode_failed, run), cancel_with_client=True
    )


async def yield_chunks(observation: Observation, chat: Chat, run: ChatRun) -> Chunks:
    """Yield a completion's chunks, and record its metrics."""
    observation.count("ChatCompletions")
    async with aclosing(observation.time_events(chat.run(run))) as chunks:
        async for chunk in chunks:
            yield chunk
    observation.count_tokens(run.completion.usage or Usage(), Usage())


async def read_all(run: ChatRun, chunks: Chunks) -> ChatCompletion:
    async for _ in chunks:
        pass
    return run.completion.whole()


def encode_failed(run: ChatRun, error: Exception) -> bytes:
    """Write a failed completion, which has the error and no choices.

    The error is first, by which the record of an idempotency key recognizes it.
    """
    failed = run.completion.whole().model_copy(update={"choices": []})
    return json.dumps(late_document_of(error) | failed.model_dump(mode="json")).encode()
