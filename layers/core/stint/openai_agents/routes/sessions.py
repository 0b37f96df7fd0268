"""Sessions of OpenAI's Agents API, their events, turns and items.

Two routes stream. `POST /sessions` streams one turn, so its stream ends when the session is idle, and may take input
until the process must end. `GET /events` streams all turns, so a setting ends it; it takes no input in the last part of
that time. Both send a comment at once: the SDK waits for the head of the answer before it sends a message.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from stint.domain.ids import new_name
from stint.domain.openai.lists import ListObject
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentRoute
from stint.http.errors import late_document_of
from stint.http.json_responses import document
from stint.http.metadata_filters import METADATA_PARAMETER, MetadataFilter
from stint.http.scopes import RETRIED, requires
from stint.http.sse import COMMENT_LINE, encode_frame
from stint.http.streaming import RequestContextDep, StreamFormat, encode_events, stream_frames
from stint.openai_agents.lists import TurnLists
from stint.openai_agents.routes.dependencies import ListWindowDep, OpenAIAgentsServicesDep
from stint.openai_agents.schemas.items import AgentItemList
from stint.openai_agents.schemas.sessions import (
    AgentSessionDeleted,
    AgentSessionObject,
    SessionCreateParams,
    SessionEventsParams,
    SessionUpdateParams,
)
from stint.openai_agents.schemas.stream_events import AgentErrorDetails, AgentErrorEvent, AgentStreamEvent
from stint.openai_agents.schemas.traces import AgentTraceObject
from stint.openai_agents.schemas.turns import AgentTurnObject
from stint.openai_agents.services import OpenAIAgentsServices
from stint.openai_agents.session_reader import SessionView
from stint.openai_agents.session_stream import SessionStream, StreamTimes, open_session_stream
from stint.openai_agents.stream_positions import START, StreamPosition, read_position
from stint.openai_agents.streamed_turns import PlacedEvent, show_created
from stint.openai_agents.turn_events import pad_delta

READ_SECONDS = 1.0
"""Seconds after the last event in which a client may read it. The invocation ends a second later."""

PREFIX = "/v1/agents/sessions"
SESSION = "/{session_id}"
STREAM = {"text/event-stream": {"schema": {"$ref": "#/components/schemas/AgentSessionEvent"}}}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": STREAM, "description": "The session, or the events of its first turn."}
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": STREAM, "description": "The events of the session, as they happen."}
}
ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"description": "The events are accepted. They take effect later."}}

router = APIRouter(prefix=PREFIX, tags=["OpenAI Agents"], route_class=AgentRoute)


@router.post("", response_model=AgentSessionObject, responses=STREAMS)
@requires("use", repeated=RETRIED)
async def create_agent_session(
    body: SessionCreateParams, request: Request, services: OpenAIAgentsServicesDep, context: RequestContextDep
) -> Response:
    """Create a session with its first message. With `stream`, the response has the events of the first turn."""
    view = await services.agent_sessions.create(body, context)
    session = await services.reader.show(view)
    if not body.stream:
        return document(session)
    stream = await open_stream(services, view, request, START, ends_when_idle=True)

    async def events() -> AsyncGenerator[PlacedEvent, None]:
        yield show_created(session)
        async with aclosing(stream.events()) as following:
            async for event in following:
                yield event

    return answer_stream(events(), services, stream, pads=body.stream_options.include_obfuscation)


@router.get("", response_model=ListObject[AgentSessionObject], openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_agent_sessions(
    services: OpenAIAgentsServicesDep, window: ListWindowDep, metadata: MetadataFilter, agent_id: str | None = None
) -> Response:
    """List sessions of all agents by creation, newest first; with `agent_id`, those of one."""
    found = await services.reader.list(window.filtered(metadata), agent_id)
    return document(ListObject[AgentSessionObject].of(found.data, found.has_more, found.position))


@router.get(SESSION, response_model=AgentSessionObject)
@requires("use")
async def get_agent_session(session_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Read a session."""
    return document(await services.reader.show(await services.reader.open(session_id)))


@router.post(SESSION, response_model=AgentSessionObject)
@requires("use")
async def update_agent_session(
    session_id: str, body: SessionUpdateParams, services: OpenAIAgentsServicesDep
) -> Response:
    """Change a session for its later turns."""
    return document(await services.reader.show(await services.agent_sessions.update(session_id, body)))


@router.delete(SESSION, response_model=AgentSessionDeleted)
@requires("use")
async def delete_agent_session(session_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Delete a session with its turns. A running turn must be cancelled first."""
    await services.agent_sessions.delete(session_id)
    return document(AgentSessionDeleted(id=session_id))


@router.post(SESSION + "/events", status_code=202, response_model=None, responses=ACCEPTED)
@requires("use", repeated=RETRIED)
async def post_session_events(
    session_id: str, body: SessionEventsParams, services: OpenAIAgentsServicesDep, context: RequestContextDep
) -> Response:
    """Send messages, results of functions, approvals or a cancellation to a session."""
    await services.agent_sessions.post(session_id, body.events, context)
    return Response(status_code=202)


@router.get(SESSION + "/events", response_class=StreamingResponse, responses=EVENTS)
@requires("use")
async def stream_session_events(
    session_id: str,
    request: Request,
    services: OpenAIAgentsServicesDep,
    include_obfuscation: Annotated[bool, Query(description="whether deltas are padded")] = True,
    _stream: Annotated[bool, Query(alias="stream", description="no effect: events are always streamed")] = True,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Stream the events of a session as they happen; with Last-Event-ID, those after an event."""
    view = await services.reader.open(session_id)
    position = read_position(last_event_id, session_id) if last_event_id else None
    following = await open_stream(services, view, request, position)
    return answer_stream(following.events(), services, following, pads=include_obfuscation)


async def open_stream(
    services: OpenAIAgentsServices,
    view: SessionView,
    request: Request,
    position: StreamPosition | None,
    *,
    ends_when_idle: bool = False,
) -> SessionStream:
    """Return a stream of a session within the time of this process. One of a new session takes input all the time.

    Raises as `SessionStream.begin`.
    """
    now, deadline = asyncio.get_running_loop().time(), deadline_of(request)
    ends_at = deadline if ends_when_idle else min(deadline, now + services.stream_seconds)
    times = StreamTimes(deadline, ends_at, ends_at if ends_when_idle else ends_at - services.stream_rest)
    observer, is_left = request.scope["stint.observation"], request.is_disconnected
    return await open_session_stream(
        services.reader, view, times, position, is_left, observer, ends_when_idle=ends_when_idle
    )


def answer_stream(
    events: AsyncGenerator[PlacedEvent, None], services: OpenAIAgentsServices, stream: SessionStream, *, pads: bool
) -> StreamingResponse:
    """Return the response with events of a stream. Its first bytes are sent at once, before there is an event."""

    def encode(placed: PlacedEvent) -> bytes:
        return encode_placed(placed, pads=pads)

    async def frames() -> AsyncGenerator[bytes, None]:
        yield COMMENT_LINE
        form = StreamFormat(encode, encode_error=partial(encode_agent_error, stream.input.session_id))
        async with aclosing(encode_events(events, form)) as encoded:
            async for frame in encoded:
                yield frame

    ends_at = stream.times.deadline + READ_SECONDS
    return stream_frames(frames(), services.heartbeat_seconds, COMMENT_LINE, ends_at=ends_at)


def encode_placed(placed: PlacedEvent, *, pads: bool) -> bytes:
    """Write one event, with its position in an `id:` line if it has one."""
    frame = encode_event(pad_delta(placed.event) if pads else placed.event)
    return frame if placed.position is None else b"id: %b\n%b" % (str(placed.position).encode(), frame)


def encode_agent_error(session_id: str, error: Exception) -> tuple[bytes, ...]:
    """Write the failure of a stream as its last event."""
    details = AgentErrorDetails.model_validate(late_document_of(error)["error"])
    return (encode_event(AgentErrorEvent(event_id=new_name("evt"), error=details, session_id=session_id)),)


def encode_event(event: AgentStreamEvent) -> bytes:
    return encode_frame(event.to_json(), event.type)


@router.get(SESSION + "/items", response_model=AgentItemList)
@requires("use")
async def list_session_items(session_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep) -> Response:
    """List the items of a session, newest first."""
    view = await services.reader.open(session_id)
    items, more = await TurnLists(services.reader).list_items(view, window)
    return document(AgentItemList.of(items, has_more=more))


@router.get(SESSION + "/turns", response_model=ListObject[AgentTurnObject])
@requires("use")
async def list_session_turns(session_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep) -> Response:
    """List the turns of a session, newest first. Messages that wait are queued turns."""
    view = await services.reader.open(session_id)
    turns, more = await TurnLists(services.reader).list_turns(view, window)
    return document(ListObject[AgentTurnObject].of(turns, has_more=more))


@router.get(SESSION + "/traces", response_model=ListObject[AgentTraceObject])
@requires("use")
async def list_session_traces(session_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep) -> Response:
    """List the traces of the turns that have ended, newest first, in the form of OTLP."""
    from stint.openai_agents.session_traces import list_traces  # noqa: PLC0415 - few requests read traces

    view = await services.reader.open(session_id)
    traces, more = await list_traces(services.reader, view, window, services.turn_traces.service)
    return document(ListObject[AgentTraceObject].of(traces, has_more=more))


@router.get(SESSION + "/turns/{turn_id}", response_model=AgentTurnObject)
@requires("use")
async def get_session_turn(session_id: str, turn_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Read a turn."""
    return document(await TurnLists(services.reader).get_turn(await services.reader.open(session_id), turn_id))


@router.get(SESSION + "/turns/{turn_id}/items", response_model=AgentItemList)
@requires("use")
async def list_session_turn_items(
    session_id: str, turn_id: str, services: OpenAIAgentsServicesDep, window: ListWindowDep
) -> Response:
    """List the items of a turn, newest first."""
    view = await services.reader.open(session_id)
    items, more = await TurnLists(services.reader).list_turn_items(view, turn_id, window)
    return document(AgentItemList.of(items, has_more=more))
