"""Routes of the API of October 2024: inference without an agent."""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.domain.inference import Usage
from stint.domain.llama_stack.embeddings import InferenceEmbeddings
from stint.domain.schema import Schema
from stint.http.deadline import deadline_of
from stint.http.json_responses import document
from stint.http.scopes import requires
from stint.http.streaming import (
    SCHEMA_FORMAT,
    buffer_document,
    encode_failure,
    stream_events,
)
from stint.observability import Observation
from stint.october_2024.inference import (
    from_chat,
    from_chat_chunks,
    from_completion,
    from_completion_chunks,
    to_chat_request,
    to_completion_request,
    to_embeddings_request,
)
from stint.october_2024.routes.dependencies import OctoberRoute, OctoberServicesDep
from stint.october_2024.schemas.inference import (
    OctoberChatRequest,
    OctoberCompletion,
    OctoberCompletionRequest,
    OctoberEmbeddingsRequest,
)
from stint.october_2024.services import OctoberServices
from stint.services.inference.answers import chat_chunks, completion_chunks, to_chat_response, to_completion_response
from stint.services.inference.runs import InferenceRun, LogprobDelta

router = APIRouter(prefix="/inference", tags=["October 2024"], route_class=OctoberRoute)


def describe_stream(chunk: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of a streamed response, for the OpenAPI document."""
    schema = {"anyOf": [{"$ref": f"#/components/schemas/{chunk}"}, {"$ref": "#/components/schemas/StreamError"}]}
    return {200: {"content": {"text/event-stream": {"schema": schema}}, "description": "The answer, or its events."}}


@router.post("/chat_completion", response_model=OctoberCompletion, responses=describe_stream("OctoberChatChunk"))
@requires("use")
async def answer_october_chat(body: OctoberChatRequest, request: Request, services: OctoberServicesDep) -> Response:
    """Answer messages. With `stream` true, the response is a stream of events. Nothing is stored."""
    run = await services.make_model_inference().start_chat(to_chat_request(body), deadline_of(request))
    deltas = observe_run(request, services, run)
    if body.stream:
        return await stream_events(
            from_chat_chunks(chat_chunks(run, deltas)), SCHEMA_FORMAT, services.heartbeat_seconds
        )
    return await read_whole(run, deltas, lambda ended: from_chat(to_chat_response(ended)), services)


@router.post("/completion", response_model=OctoberCompletion, responses=describe_stream("OctoberCompletionChunk"))
@requires("use")
async def complete_october_content(
    body: OctoberCompletionRequest, request: Request, services: OctoberServicesDep
) -> Response:
    """Complete a content. With `stream` true, the response is a stream of events. Nothing is stored."""
    run = await services.make_model_inference().start_completion(to_completion_request(body), deadline_of(request))
    deltas = observe_run(request, services, run)
    if body.stream:
        chunks = from_completion_chunks(completion_chunks(run, deltas))
        return await stream_events(chunks, SCHEMA_FORMAT, services.heartbeat_seconds)
    return await read_whole(run, deltas, lambda ended: from_completion(to_completion_response(ended)), services)


@router.post("/embeddings", response_model=InferenceEmbeddings)
@requires("use")
async def embed_october_contents(body: OctoberEmbeddingsRequest, services: OctoberServicesDep) -> Response:
    """Embed contents."""
    async with services.meters.request():
        return document(await services.make_embeddings().embed_contents(to_embeddings_request(body)))


async def observe_run(
    request: Request, services: OctoberServices, run: InferenceRun
) -> AsyncGenerator[LogprobDelta, None]:
    """Yield an answer's deltas, and record its metrics."""
    observation: Observation = request.scope["stint.observation"]
    observation.count("Inferences")
    async with aclosing(observation.time_events(services.make_model_inference().run(run))) as deltas:
        async for delta in deltas:
            yield delta
    observation.count_tokens(run.answer.usage or Usage(), Usage())


async def read_whole(
    run: InferenceRun,
    deltas: AsyncGenerator[LogprobDelta, None],
    convert: Callable[[InferenceRun], Schema],
    services: OctoberServices,
) -> Response:
    async def read() -> Schema:
        async for _ in deltas:
            pass
        return convert(run)

    work: Coroutine[Any, Any, Schema] = read()
    return await buffer_document(work, services.heartbeat_seconds, encode_error=encode_failure, cancel_with_client=True)
