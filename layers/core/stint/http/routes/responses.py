"""Routes of responses, which may stream."""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response

from stint.apis.openai import OpenAIServices
from stint.domain.errors import DeadlineExceeded, InvalidRequest, NotFound, StintError
from stint.domain.ids import name_of
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
from stint.domain.run_signals import HeartbeatReceived
from stint.http.deadline import deadline_of
from stint.http.dependencies import ProviderDataDep, is_llama_stack_address
from stint.http.errors import document_of
from stint.http.json_responses import document
from stint.http.list_params import Included, Limit, Order
from stint.http.openai_dependencies import OpenAIServicesDep
from stint.http.requests import StrictRoute
from stint.http.response_admission import (
    WAITS,
    NewResponse,
    WaitingResponse,
    cancel_run,
    follow_run,
    read_response,
    use_run,
)
from stint.http.response_attempts import FollowedResponse, find_earlier_response, omit_end_marker
from stint.http.sse import DONE, encode_frame
from stint.http.stream_position import LastEvent
from stint.http.streaming import (
    StreamFormat,
    buffer_document,
    encode_events,
    encode_last_frames,
    stream_events,
    stream_frames,
)
from stint.http.waiting_runs import TaskReader, wait_until
from stint.observability import Observation
from stint.services.responses.response_run import ResponseRun
from stint.tools.port import ProviderData

RESPONSES = "/v1/responses"
RESPONSE = RESPONSES + "/{response_id}"
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ResponseStreamEvent"}}},
        "description": "The response, or its events.",
    }
}
router = APIRouter(tags=["Responses"], route_class=StrictRoute)


@router.post(RESPONSES, response_model=ResponseObject, responses=STREAMS | WAITS)
async def create_response(
    body: CreateResponse, request: Request, services: OpenAIServicesDep, keys: ProviderDataDep
) -> Response:
    """Create a response. With `stream` true, the answer is a stream of events."""
    if is_llama_stack_address(request):
        body = body.for_llama_stack()
    new = NewResponse(services, body, deadline_of(request), keys)
    if (waiting := await new.find_waiting()) is not None:
        return await answer_waiting(request, waiting, stream=body.stream)
    if (earlier := await find_earlier_response(services, new.deadline, stored=body.store)) is not None:
        return await answer_with_earlier(earlier, request, stream=body.stream)
    if body.background:
        return await begin_in_background(body, request, services, keys)
    response = await new.start_now()
    if isinstance(response, WaitingResponse):
        return await answer_waiting(request, response, stream=body.stream)
    return await answer(request, services, response, stream=body.stream)


async def answer(request: Request, services: OpenAIServices, response: ResponseRun, *, stream: bool) -> Response:
    """Run a started response, and return the answer in the requested form."""
    observation = observation_of(request)
    observation.name_response(response.response_id)
    events = observation.follow_response(services.responses.run(response))
    if stream:
        return await stream_events(events, NEW_EVENTS, services.heartbeat_seconds, response)
    return await buffer_document(last_response(events), services.heartbeat_seconds, response, encode_error=encode_error)


async def answer_waiting(request: Request, response: WaitingResponse, *, stream: bool) -> Response:
    """Return the answer of a response that waits for its conversation. Heartbeats keep a stream open.

    Without a stream, nothing is sent before the status is known: 202 with the queued response after SILENT_SECONDS.
    """
    services = response.services
    if stream:
        events = TaskReader(response.events(observation_of(request))).read()
        return await stream_events(events, WAITING_EVENTS, services.heartbeat_seconds)
    try:
        started = await response.start(wait_until(request))
    except DeadlineExceeded:
        if response.message_id is None:
            raise
        waiting = services.make_waiting_responses()
        return document(await waiting.get(name_of("resp", response.message_id)), status=202)
    if isinstance(started, FollowedResponse):
        return await answer_with_earlier(started, request, stream=False)
    return await answer(request, services, started, stream=False)


async def answer_with_earlier(earlier: FollowedResponse, request: Request, *, stream: bool) -> Response:
    """Return the answer of a response that an earlier attempt created."""
    if stream:
        return await answer_following(earlier.response_id, -1, request, earlier.services)
    reading, beat = earlier.read(deadline_of(request)), earlier.services.heartbeat_seconds
    return await buffer_document(reading, beat, earlier, encode_error=encode_error)


@router.post(RESPONSES + "/compact", response_model=CompactedResponse)
async def compact_response(body: CompactRequest, request: Request, services: OpenAIServicesDep) -> Response:
    """Compact a conversation. The output is the input of a request that continues it."""
    compacting = services.compaction.compact(body, deadline_of(request))
    return await buffer_document(compacting, services.heartbeat_seconds, encode_error=encode_error)


@router.post(RESPONSES + "/input_tokens", response_model=InputTokens)
async def count_input_tokens(body: InputTokensRequest, services: OpenAIServicesDep, keys: ProviderDataDep) -> Response:
    """Count the input tokens of a response."""
    return document(await services.token_counts.count(body, keys))


@router.get(RESPONSES, response_model=ResponseList)
async def list_responses(
    request: Request,
    services: OpenAIServicesDep,
    limit: Limit,
    after: str | None = None,
    model: str | None = None,
    order: Order = "desc",
) -> Response:
    """List responses, newest first."""
    if {"upgrade", "sec-websocket-key"} & set(request.headers):  # API Gateway removes the Upgrade header
        raise InvalidRequest(
            "WebSocket is not supported. Use POST /v1/responses with stream true.", code="websocket_not_supported"
        )
    return document(await services.stored_responses.list(after, limit, model, order))


@router.get(RESPONSE, response_model=ResponseObject, responses=STREAMS)
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
        return await answer_following(response_id, -1 if last is None else last, request, services)
    if "starting_after" in request.query_params:
        raise InvalidRequest("starting_after needs stream true. Send both, or neither.", param="starting_after")
    return document(await read_response(services, response_id, include))


@router.post(RESPONSE + "/cancel", response_model=ResponseObject)
async def cancel_response(response_id: str, services: OpenAIServicesDep) -> Response:
    """Cancel a response, and return it when it has ended. One that has ended is unchanged."""
    return document(await cancel_run(services, response_id))


@router.post(RESPONSE + "/heartbeat", response_model=HeartbeatReceived)
async def send_response_heartbeat(response_id: str, services: OpenAIServicesDep) -> Response:
    """Keep a response running that was started with `on_disconnect` cancel. Any other response is unchanged."""
    return document(await use_run(services, response_id, services.make_response_cancellation().receive_heartbeat))


@router.delete(RESPONSE, response_model=DeletedResponse)
async def delete_response(response_id: str, services: OpenAIServicesDep) -> Response:
    """Delete a response, and stop it if it runs. One that waits for its conversation is not started."""
    try:
        return document(await services.stored_responses.delete(response_id))
    except NotFound:
        return document(await services.make_waiting_responses().delete(response_id))


@router.get(RESPONSE + "/input_items", response_model=ItemList)
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
    listed = await use_run(services, response_id, lambda own: read(own, after, before, limit, order, include))
    return document(listed)


async def begin_in_background(
    body: CreateResponse, request: Request, services: OpenAIServices, keys: ProviderData
) -> Response:
    """Return a response that waits for the worker, or the stream of its events."""
    stored = await services.background.create(body, deadline_of(request), keys)
    observation_of(request).name_response(response_id := stored.header.response_id)
    if body.stream:
        return await answer_following(response_id, -1, request, services)
    return document(services.stored_responses.to_resource(stored))


async def answer_following(response_id: str, after: int, request: Request, services: OpenAIServices) -> Response:
    events = await follow_run(services, response_id, after, deadline_of(request))
    return stream_frames(encode_events(events, STORED_EVENTS), services.heartbeat_seconds)


def observation_of(request: Request) -> Observation:
    observation: Observation = request.scope["stint.observation"]
    return observation


def encode_event(event: ResponseEvent | str) -> bytes:
    return encode_stored_event(event) if isinstance(event, str) else encode_frame(event.to_json(), event.type)


def encode_stored_event(text: str) -> bytes:
    return encode_frame(text.encode(), json.loads(text)["type"])


def encode_error(error: Exception) -> bytes:
    if not isinstance(error, StintError):
        raise error
    return json.dumps(document_of(error)).encode()


NEW_EVENTS = StreamFormat(encode_event, end=(DONE,))
WAITING_EVENTS = StreamFormat(encode_event, end=(DONE,), encode_error=encode_last_frames)
STORED_EVENTS = StreamFormat(encode_stored_event, end=(DONE,), encode_error=omit_end_marker)


async def last_response(events: AsyncIterator[ResponseEvent]) -> ResponseObject:
    """Return the response of a run's last event."""
    last: ResponseObject | None = None
    async for event in events:
        last = getattr(event, "response", last)
    assert last is not None  # noqa: S101 - a run ends with its terminal event
    return last
