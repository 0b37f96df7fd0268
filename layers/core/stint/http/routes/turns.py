"""Routes of the turns group, whose responses can be large or take long."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from stint.apis.agents import AgentsServices
from stint.domain.errors import Conflict, DeadlineExceeded, InvalidRequest
from stint.domain.llama_stack.events import Event, NumberedEvent, Payload, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.sessions import Session
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnResumeRequest
from stint.domain.run_signals import HeartbeatReceived
from stint.domain.schema import Schema
from stint.domain.steps import StepResponse
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentRoute, AgentsServicesDep, ProviderDataDep
from stint.http.errors import body_of
from stint.http.json_responses import document
from stint.http.sse import COMMENT_LINE, encode_frame
from stint.http.stream_position import LastEvent
from stint.http.streaming import (
    StreamFormat,
    buffer_document,
    encode_events,
    encode_last_frame,
    stream_events,
    stream_frames,
)
from stint.http.turn_admission import NewTurn, WaitingTurn, number_events
from stint.http.turn_attempts import (
    FollowedTurn,
    TurnIds,
    encode_tail_error,
    find_earlier_resume,
    find_earlier_turn,
    find_waiting,
    follow_resume,
    follow_run,
    use_run,
)
from stint.http.waiting_runs import TaskReader, wait_until
from stint.observability import Observation
from stint.services.turns.turn_run import TurnRun

SESSION = "/v1/agents/{agent_id}/session/{session_id}"
TURN = SESSION + "/turn/{turn_id}"
STREAM_SCHEMA = {"anyOf": [{"$ref": "#/components/schemas/StreamChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
"""The data of each event, for the OpenAPI document."""

STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": STREAM_SCHEMA}}, "description": "The turn, or its events."}
}
WAITS: dict[int | str, dict[str, Any]] = {
    202: {"model": Turn, "description": "The message waits, and its turn is started later. It has no steps yet."}
}
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": STREAM_SCHEMA}}, "description": "The events of the turn."}
}


class StreamEvent(Schema):
    payload: Payload


class StreamChunk(Schema):
    """The data of an event."""

    event: StreamEvent


router = APIRouter(tags=["Turns"], route_class=AgentRoute)


async def answer(request: Request, services: AgentsServices, turn: TurnRun, *, stream: bool) -> Response:
    """Run a started turn, and return a response in the requested form."""
    observation: Observation = request.scope["stint.observation"]
    events = observation.yield_events(services.turns.run(turn), turn.used)
    if stream:
        numbered = number_events(events, turn.first_event)
        response = await stream_events(numbered, TURN_EVENTS, services.heartbeat_seconds, turn)
    else:
        response = await buffer_document(last_turn(events), services.heartbeat_seconds, turn)
    response.background = BackgroundTask(services.turns.write_segments, turn)
    return response


async def answer_waiting(request: Request, services: AgentsServices, turn: WaitingTurn, *, stream: bool) -> Response:
    """Return the response of a turn that waits for its session. Heartbeats keep a stream open.

    Without a stream, nothing is sent before the status is known: 202 with the waiting turn after SILENT_SECONDS.
    """
    if stream:
        events = TaskReader(turn.events(request.scope["stint.observation"])).read()
        form = StreamFormat(encode_numbered_event, encode_error=encode_last_frame, comment=COMMENT_LINE)
        return await stream_events(events, form, services.heartbeat_seconds)
    try:
        started = await turn.start(wait_until(request))
    except DeadlineExceeded:
        if turn.message_id is None:
            raise
        waiting = await services.turns.get(turn.new.agent_id, turn.new.session_id, turn.message_id)
        return document(waiting, status=202)
    if isinstance(started, FollowedTurn):
        return await answer_with_earlier(services, started, stream=False)
    return await answer(request, services, started, stream=False)


async def answer_with_earlier(services: AgentsServices, turn: FollowedTurn, *, stream: bool) -> Response:
    """Return the response of a turn that an earlier attempt created."""
    if stream:
        return stream_earlier(turn.read_events(), services)
    events = (numbered.event async for numbered in turn.read_events())
    return await buffer_document(last_turn(events), services.heartbeat_seconds, turn)


def stream_earlier(events: AsyncGenerator[NumberedEvent, None], services: AgentsServices) -> Response:
    """Return the events of a turn that another request runs."""
    frames = encode_events(events, FOLLOWED_EVENTS)
    return stream_frames(frames, services.heartbeat_seconds, FOLLOWED_EVENTS.comment)


def encode_event(event: Event) -> bytes:
    """Write one event: a `data:` line and an empty line, without `event:`."""
    if isinstance(event, TurnFailed):
        return encode_frame(json.dumps({"error": body_of(event.error)}, ensure_ascii=False).encode())
    return encode_frame(b'{"event":{"payload":%b}}' % event.to_json())


def encode_numbered_event(numbered: NumberedEvent) -> bytes:
    """Write one event with its number in an `id:` line."""
    return b"id: %d\n%b" % (numbered.number, encode_event(numbered.event))


TURN_EVENTS = StreamFormat(encode_numbered_event, comment=COMMENT_LINE)
FOLLOWED_EVENTS = StreamFormat(encode_numbered_event, encode_error=encode_tail_error, comment=COMMENT_LINE)


async def last_turn(events: AsyncIterator[Event]) -> Turn:
    """Return the turn of a run's terminal event, which is the last one."""
    terminal = [event async for event in events if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed)]
    [event] = terminal
    return event.turn


@router.post(SESSION + "/turn", response_model=Turn, responses=STREAMS | WAITS)
async def create_turn(
    agent_id: str,
    session_id: str,
    body: TurnCreateRequest,
    request: Request,
    services: AgentsServicesDep,
    keys: ProviderDataDep,
) -> Response:
    """Create a turn. With `stream` true, the response is a stream of events."""
    deadline = deadline_of(request)
    new = NewTurn(services, agent_id, session_id, body, deadline, keys)
    message_id = await find_waiting(services, agent_id, session_id)
    if message_id is not None:
        return await answer_waiting(request, services, WaitingTurn(new, message_id), stream=body.stream)
    if (earlier := await find_earlier_turn(services, agent_id, session_id, deadline)) is not None:
        return await answer_with_earlier(services, earlier, stream=body.stream)
    turn = await new.start_now()
    if isinstance(turn, WaitingTurn):
        return await answer_waiting(request, services, turn, stream=body.stream)
    return await answer(request, services, turn, stream=body.stream)


@router.post(TURN + "/resume", response_model=Turn, responses=STREAMS)
async def resume_turn(
    agent_id: str,
    session_id: str,
    turn_id: str,
    body: TurnResumeRequest,
    request: Request,
    services: AgentsServicesDep,
    keys: ProviderDataDep,
) -> Response:
    """Send tool responses, and resume the session's last turn.

    A waiting turn accepts a response to each of its calls. A completed turn accepts responses to calls that the client
    parsed from the text of its output message, with new call ids. Responses that the turn has already return the rest
    of the turn.
    """
    deadline = deadline_of(request)

    async def resume(ids: TurnIds) -> Response:
        if (first := await follow_resume(services, ids, body, deadline)) is not None:
            return await answer_with_earlier(services, first, stream=body.stream)
        try:
            turn = await services.turns.resume(*ids, body, deadline, keys)
        except (Conflict, InvalidRequest):
            earlier = await find_earlier_resume(services, ids, body, deadline)
            if earlier is None:
                raise
            return await answer_with_earlier(services, earlier, stream=body.stream)
        return await answer(request, services, turn, stream=body.stream)

    return await use_run(services, (agent_id, session_id, turn_id), resume)


@router.get(TURN + "/events", response_class=StreamingResponse, responses=EVENTS)
async def follow_turn(
    agent_id: str, session_id: str, turn_id: str, request: Request, services: AgentsServicesDep, last: LastEvent = None
) -> Response:
    """Stream the events of a turn after the last one that the client has, until the turn ends or waits."""
    ids, after = (agent_id, session_id, turn_id), -1 if last is None else last
    return stream_earlier(await follow_run(services, ids, after, deadline_of(request)), services)


@router.post(TURN + "/cancel", response_model=Turn)
async def cancel_turn(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Cancel a turn that runs or waits for tool responses, and return it. One that has ended is unchanged.

    Its finished steps are kept, its stream ends with `turn_complete`, and the session is free.
    """
    return document(await services.make_turn_cancellation().cancel(agent_id, session_id, turn_id))


@router.post(TURN + "/heartbeat", response_model=HeartbeatReceived)
async def send_turn_heartbeat(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Keep a turn running that was started with `on_disconnect` cancel. Any other turn is unchanged."""
    return document(await services.make_turn_cancellation().receive_heartbeat(agent_id, session_id, turn_id))


@router.get(TURN, response_model=Turn)
async def get_turn(agent_id: str, session_id: str, turn_id: str, services: AgentsServicesDep) -> Response:
    """Read a turn."""
    return document(await services.turns.get(agent_id, session_id, turn_id))


@router.get(TURN + "/step/{step_id}", response_model=StepResponse)
async def get_step(agent_id: str, session_id: str, turn_id: str, step_id: str, services: AgentsServicesDep) -> Response:
    """Read a step of a turn."""
    return document(StepResponse(step=await services.turns.step(agent_id, session_id, turn_id, step_id)))


@router.get(SESSION, response_model=Session)
async def get_session(
    agent_id: str, session_id: str, services: AgentsServicesDep, turn_ids: Annotated[list[str] | None, Query()] = None
) -> Response:
    """Read a session with its turns in creation order, or with those of `turn_ids` (repeated, or joined by commas)."""
    wanted = None if turn_ids is None else {part for value in turn_ids for part in value.split(",")}
    session, others = await services.sessions.read_pages(agent_id, session_id, wanted)
    if others is None:
        return document(session)
    return StreamingResponse(write_session(session, others), media_type="application/json")


async def write_session(session: Session, others: AsyncIterator[list[Turn]]) -> AsyncIterator[bytes]:
    """Yield a session as JSON while its turns are read."""
    head, mark, tail = session.model_copy(update={"turns": []}).to_json().partition(b'"turns":[')
    yield head + mark + b",".join(turn.to_json() for turn in session.turns)
    session.turns.clear()
    async for turns in others:
        yield b"".join(b"," + turn.to_json() for turn in turns)
    yield tail
