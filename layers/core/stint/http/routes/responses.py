"""Routes of responses, which may stream.

As in `turns.py`, a route submits a request and answers with its handle. Without `stream`, a response that still waits
for its conversation after SILENT_SECONDS is answered with 202, as a queued one.
"""

import json
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.apis.openai import OpenAIServices
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.model_inputs import ModelInput
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_requests import CompactRequest, CreateResponse, InputTokensRequest
from stint.domain.openai.response_resource import (
    CompactedResponse,
    DeletedResponse,
    InputTokens,
    ItemList,
    ResponseList,
)
from stint.domain.openai.response_resource import Response as ResponseObject
from stint.domain.openai.response_steps import ResponseStepList
from stint.domain.openai.stored_responses import ResponseStatus
from stint.domain.run_signals import HeartbeatReceived
from stint.http.deadline import deadline_of
from stint.http.dependencies import ProviderDataDep, is_llama_stack_address
from stint.http.errors import document_of
from stint.http.json_responses import TRACE, document
from stint.http.list_params import Included, Limit, Order
from stint.http.message_pages import FirstMessage
from stint.http.openai_dependencies import OpenAIServicesDep
from stint.http.requests import StrictRoute
from stint.http.scopes import RUN, requires
from stint.http.sse import DONE, encode_frame
from stint.http.stream_position import LastEvent
from stint.http.streaming import (
    RequestContextDep,
    RunFormat,
    StreamFormat,
    answer_run,
    buffer_document,
    encode_last_frames,
)
from stint.services.runs.run_handle import RunHandle, StreamClosed

RESPONSES = "/v1/responses"
RESPONSE = RESPONSES + "/{response_id}"
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ResponseStreamEvent"}}},
        "description": "The response, or its events.",
    }
}
WAITS: dict[int | str, dict[str, Any]] = {
    202: {"model": ResponseObject, "description": "The response is queued, and started later."}
}
router = APIRouter(tags=["Responses"], route_class=StrictRoute)


@router.post(RESPONSES, response_model=ResponseObject, responses=STREAMS | WAITS)
@requires("use", repeated=RUN)
async def create_response(
    body: CreateResponse, request: Request, services: OpenAIServicesDep, context: RequestContextDep
) -> Response:
    """Create a response. With `stream` true, the answer is a stream of events."""
    if is_llama_stack_address(request):
        body = body.for_llama_stack()
    handle = await services.response_requests.submit(body, context)
    return await answer_response(handle, services, context.deadline, stream=body.stream)


@router.post(RESPONSES + "/compact", response_model=CompactedResponse)
@requires("use")
async def compact_response(body: CompactRequest, request: Request, services: OpenAIServicesDep) -> Response:
    """Compact a conversation. The output is the input of a request that continues it."""
    compacting = services.compaction.compact(body, deadline_of(request))
    return await buffer_document(compacting, services.heartbeat_seconds, encode_error=encode_error)


@router.post(RESPONSES + "/input_tokens", response_model=InputTokens)
@requires("use")
async def count_input_tokens(body: InputTokensRequest, services: OpenAIServicesDep, keys: ProviderDataDep) -> Response:
    """Count the input tokens of a response."""
    return document(await services.token_counts.count(body, keys))


@router.get(RESPONSES, response_model=ResponseList)
@requires("use")
async def list_responses(
    request: Request,
    services: OpenAIServicesDep,
    limit: Limit,
    after: str | None = None,
    model: str | None = None,
    order: Order = "desc",
    status: ResponseStatus | None = None,
) -> Response:
    """List responses, newest first.

    With `status`, a page may be short although others follow: go on after `next_after`.
    """
    if {"upgrade", "sec-websocket-key"} & set(request.headers):  # API Gateway removes the Upgrade header
        raise InvalidRequest(
            "WebSocket is not supported. Use POST /v1/responses with stream true.", code="websocket_not_supported"
        )
    return document(await services.stored_responses.list(after, limit, model, order, status))


@router.get(RESPONSE, response_model=ResponseObject, responses=STREAMS)
@requires("use")
async def get_response(
    response_id: str,
    request: Request,
    services: OpenAIServicesDep,
    include: Included,
    stream: bool = False,
    last: LastEvent = None,
) -> Response:
    """Read a response. With `stream` true, stream its events after `starting_after`, until it ends."""
    if stream:
        deadline, after = deadline_of(request), -1 if last is None else last
        handle = services.response_requests.follow(response_id, after, deadline)
        return await answer_response(handle, services, deadline, stream=True)
    if "starting_after" in request.query_params:
        raise InvalidRequest("starting_after needs stream true. Send both, or neither.", param="starting_after")
    return document(await services.response_requests.get(response_id, include))


@router.post(RESPONSE + "/cancel", response_model=ResponseObject)
@requires("use")
async def cancel_response(response_id: str, services: OpenAIServicesDep) -> Response:
    """Cancel a response, and return it when it has ended. One that has ended is unchanged."""
    return document(await services.response_requests.cancel(response_id))


@router.post(RESPONSE + "/heartbeat", response_model=HeartbeatReceived)
@requires("use")
async def send_response_heartbeat(response_id: str, services: OpenAIServicesDep) -> Response:
    """Keep a response running that was started with `on_disconnect` cancel. Any other response is unchanged."""
    return document(await services.response_requests.receive_heartbeat(response_id))


@router.delete(RESPONSE, response_model=DeletedResponse)
@requires("use")
async def delete_response(response_id: str, services: OpenAIServicesDep) -> Response:
    """Delete a response, and stop it if it runs. One that waits for its conversation is not started."""
    return document(await services.response_requests.delete(response_id))


@router.get(RESPONSE + "/input_items", response_model=ItemList)
@requires("use")
async def list_input_items(
    response_id: str,
    services: OpenAIServicesDep,
    include: Included,
    limit: Limit,
    after: str | None = None,
    before: str | None = None,
    order: Order = "desc",
) -> Response:
    """List the input items of a response, newest first."""
    read = services.stored_responses.input_items
    use_found = services.response_requests.use_found
    return document(await use_found(response_id, lambda own: read(own, after, before, limit, order, include)))


@router.get(RESPONSE + "/steps", response_model=ResponseStepList)
@requires("use")
async def list_response_steps(response_id: str, services: OpenAIServicesDep) -> Response:
    """List the model calls, tool calls and compactions of a response with their times, in order."""
    return document(await services.response_requests.use_found(response_id, services.stored_responses.steps))


@router.get(RESPONSE + "/steps/{step_id}/input", response_model=ModelInput)
@requires("use")
async def get_response_step_input(
    response_id: str,
    step_id: str,
    services: OpenAIServicesDep,
    provider_data: ProviderDataDep,
    start_index: FirstMessage = 0,
) -> Response:
    """Read what the model saw in a model call: messages, tools and parameters, rebuilt from what is stored."""
    read = services.response_inputs.read
    use_found = services.response_requests.use_found
    return document(await use_found(response_id, lambda own: read(own, step_id, start_index, provider_data)))


@router.get(RESPONSE + "/trace", responses=TRACE)
@requires("use")
async def get_response_trace(response_id: str, services: OpenAIServicesDep) -> Response:
    """Read the trace of a response that has ended, in OTLP/JSON with OpenTelemetry's names for generative AI."""
    return document(await services.response_requests.use_found(response_id, services.response_traces.read))


def encode_event(event: ResponseEvent | str) -> bytes:
    if isinstance(event, str):
        return encode_frame(event.encode(), json.loads(event)["type"])
    return encode_frame(event.to_json(), event.type)


def encode_last_events(error: Exception) -> tuple[bytes, ...]:
    """Write an error and the end of a stream; nothing if the client is to reconnect after its last event."""
    return () if isinstance(error, StreamClosed) else encode_last_frames(error)


def encode_error(error: Exception) -> bytes:
    if not isinstance(error, StintError):
        raise error
    return json.dumps(document_of(error)).encode()


def show_response(response: ResponseObject) -> ResponseObject:
    return response


RESPONSE_FORMAT = RunFormat(
    StreamFormat(encode_event, end=(DONE,), encode_error=encode_last_events), show_response, encode_error
)


async def answer_response(
    handle: RunHandle[ResponseEvent | str, ResponseObject], services: OpenAIServices, deadline: float, *, stream: bool
) -> Response:
    """Return the answer of a response in the requested form."""
    beat = services.heartbeat_seconds
    return await answer_run(handle, RESPONSE_FORMAT, stream=stream, heartbeat_seconds=beat, deadline=deadline)
