"""Routes of the turns group, whose responses can be large or take long."""

import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from stint.domain.llama_stack.events import Event, Payload, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.sessions import Session
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest, TurnResumeRequest
from stint.domain.schema import Schema
from stint.domain.steps import StepResponse
from stint.http.deadline import deadline_of
from stint.http.dependencies import AgentRoute, AgentsServicesDep, ProviderDataDep
from stint.http.errors import body_of
from stint.http.json_responses import document
from stint.http.sse import encode_frame
from stint.http.streaming import StreamFormat, buffer_document, stream_events
from stint.observability import Observation
from stint.services.agents_api import AgentsServices
from stint.services.turns.turn_run import TurnRun

SESSION = "/v1/agents/{agent_id}/session/{session_id}"
TURN = SESSION + "/turn/{turn_id}"
STREAM_SCHEMA = {"anyOf": [{"$ref": "#/components/schemas/StreamChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
"""The data of each event, for the OpenAPI document."""

STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": STREAM_SCHEMA}}, "description": "The turn, or its events."}
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
        response = await stream_events(events, StreamFormat(encode_event), services.heartbeat_seconds, turn)
    else:
        response = await buffer_document(last_turn(events), services.heartbeat_seconds, turn)
    response.background = BackgroundTask(services.turns.write_segments, turn)
    return response


def encode_event(event: Event) -> bytes:
    """Write one event: a `data:` line and an empty line, nothing else (no `event:`, `id:` or `[DONE]`)."""
    if isinstance(event, TurnFailed):
        return encode_frame(json.dumps({"error": body_of(event.error)}, ensure_ascii=False).encode())
    return encode_frame(b'{"event":{"payload":%b}}' % event.to_json())


async def last_turn(events: AsyncIterator[Event]) -> Turn:
    """Return the turn of a run's terminal event, which is the last one."""
    terminal = [event async for event in events if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed)]
    [event] = terminal
    return event.turn


@router.post(SESSION + "/turn", response_model=Turn, responses=STREAMS)
async def create_turn(
    agent_id: str,
    session_id: str,
    body: TurnCreateRequest,
    request: Request,
    services: AgentsServicesDep,
    keys: ProviderDataDep,
) -> Response:
    """Create a turn. With `stream` true, the response is a stream of events."""
    turn = await services.turns.start(agent_id, session_id, body, deadline_of(request), keys)
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
    parsed from the text of its output message, with new call ids.
    """
    turn = await services.turns.resume(agent_id, session_id, turn_id, body, deadline_of(request), keys)
    return await answer(request, services, turn, stream=body.stream)


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
