"""The route of OpenAI's text completions, which may stream."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.apis.inference import InferenceServices
from stint.domain.inference import Usage
from stint.domain.openai.completions import TextCompletion, TextCompletionRequest
from stint.http.deadline import deadline_of
from stint.http.inference_dependencies import InferenceServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import requires
from stint.http.streaming import CHUNKS, buffer_document, encode_failure, stream_events
from stint.observability import Observation
from stint.services.inference.completions import TextCompletionRun

CHUNK_SCHEMA = {
    "anyOf": [{"$ref": "#/components/schemas/TextCompletion"}, {"$ref": "#/components/schemas/StreamError"}]
}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": CHUNK_SCHEMA}}, "description": "The completions, or chunks."}
}

router = APIRouter(tags=["Chat"], route_class=StrictRoute)


@router.post("/v1/completions", response_model=TextCompletion, responses=STREAMS)
@requires("use")
async def create_completion(body: TextCompletionRequest, request: Request, services: InferenceServicesDep) -> Response:
    """Complete one or more prompts. With `stream` true, the response is a stream of chunks. Nothing is stored."""
    run = await services.completions.start(body, deadline_of(request))
    chunks = observe(request, services, run)
    if body.stream:
        return await stream_events(chunks, CHUNKS, services.heartbeat_seconds)

    async def read_all() -> TextCompletion:
        async for _ in chunks:
            pass
        return run.whole()

    return await buffer_document(
        read_all(), services.heartbeat_seconds, encode_error=encode_failure, cancel_with_client=True
    )


async def observe(
    request: Request, services: InferenceServices, run: TextCompletionRun
) -> AsyncGenerator[TextCompletion, None]:
    """Yield the chunks of completions, and record their metrics."""
    observation: Observation = request.scope["stint.observation"]
    observation.count("Completions", len(run.runs))
    async with aclosing(observation.time_events(services.completions.run(run))) as chunks:
        async for chunk in chunks:
            yield chunk
    observation.count_tokens(run.usage or Usage(), Usage())
