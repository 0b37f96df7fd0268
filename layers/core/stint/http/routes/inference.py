"""Routes of Llama Stack's inference, which may stream."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.apis.inference import InferenceServices
from stint.domain.inference import Usage
from stint.domain.llama_stack.inference import (
    BatchChatCompletionResponse,
    BatchChatRequest,
    BatchCompletionRequest,
    BatchCompletionResponse,
    ChatCompletionResponse,
    CompletionResponse,
    InferenceChatRequest,
    InferenceCompletionRequest,
)
from stint.domain.schema import Schema
from stint.http.deadline import deadline_of
from stint.http.inference_dependencies import InferenceServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import requires
from stint.http.streaming import (
    SCHEMA_FORMAT,
    buffer_document,
    encode_failure,
    stream_events,
)
from stint.observability import Observation
from stint.services.inference.answers import chat_chunks, completion_chunks, to_chat_response, to_completion_response
from stint.services.inference.runs import InferenceRun, LogprobDelta

INFERENCE = "/v1/inference"


def streams(chunk: str, noun: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of a streamed response, for the OpenAPI document."""
    schema = {"anyOf": [{"$ref": f"#/components/schemas/{chunk}"}, {"$ref": "#/components/schemas/StreamError"}]}
    return {200: {"content": {"text/event-stream": {"schema": schema}}, "description": f"The {noun}, or its events."}}


router = APIRouter(tags=["Inference"], route_class=StrictRoute)


@router.post(
    f"{INFERENCE}/chat-completion",
    response_model=ChatCompletionResponse,
    responses=streams("ChatCompletionResponseStreamChunk", "answer"),
)
@requires("use")
async def answer_chat(body: InferenceChatRequest, request: Request, services: InferenceServicesDep) -> Response:
    """Answer messages. With `stream` true, the response is a stream of events. Nothing is stored."""
    run = await services.inference.start_chat(body, deadline_of(request))
    deltas = observe(request, services, run)
    if body.stream:
        return await stream_events(chat_chunks(run, deltas), SCHEMA_FORMAT, services.heartbeat_seconds)
    return await whole(run, deltas, to_chat_response, services)


@router.post(
    f"{INFERENCE}/completion",
    response_model=CompletionResponse,
    responses=streams("CompletionResponseStreamChunk", "completion"),
)
@requires("use")
async def complete_content(
    body: InferenceCompletionRequest, request: Request, services: InferenceServicesDep
) -> Response:
    """Complete a content. With `stream` true, the response is a stream of events. Nothing is stored."""
    run = await services.inference.start_completion(body, deadline_of(request))
    deltas = observe(request, services, run)
    if body.stream:
        return await stream_events(completion_chunks(run, deltas), SCHEMA_FORMAT, services.heartbeat_seconds)
    return await whole(run, deltas, to_completion_response, services)


@router.post(f"{INFERENCE}/batch-chat-completion", response_model=BatchChatCompletionResponse)
@requires("use")
async def answer_chats(body: BatchChatRequest, request: Request, services: InferenceServicesDep) -> Response:
    """Answer several chats with one model."""
    return await buffered(services.inference.chat_batch(body, deadline_of(request)), services)


@router.post(f"{INFERENCE}/batch-completion", response_model=BatchCompletionResponse)
@requires("use")
async def complete_contents(body: BatchCompletionRequest, request: Request, services: InferenceServicesDep) -> Response:
    """Complete several contents with one model."""
    return await buffered(services.inference.complete_batch(body, deadline_of(request)), services)


async def observe(
    request: Request, services: InferenceServices, run: InferenceRun
) -> AsyncGenerator[LogprobDelta, None]:
    """Yield an answer's deltas, and record its metrics."""
    observation: Observation = request.scope["stint.observation"]
    observation.count("Inferences")
    async with aclosing(observation.time_events(services.inference.run(run))) as deltas:
        async for delta in deltas:
            yield delta
    observation.count_tokens(run.answer.usage or Usage(), Usage())


async def whole(
    run: InferenceRun,
    deltas: AsyncGenerator[LogprobDelta, None],
    convert: Callable[[InferenceRun], Schema],
    services: InferenceServices,
) -> Response:
    async def read() -> Schema:
        async for _ in deltas:
            pass
        return convert(run)

    return await buffered(read(), services)


async def buffered(work: Coroutine[Any, Any, Schema], services: InferenceServices) -> Response:
    return await buffer_document(work, services.heartbeat_seconds, encode_error=encode_failure, cancel_with_client=True)
