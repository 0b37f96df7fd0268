"""Routes of the API of October 2024: agents, sessions, turns and steps."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from starlette.background import BackgroundTask

from stint.apis.october import OctoberServices
from stint.caller import find_attempt
from stint.domain.llama_stack.agents import AgentCreateResponse
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.october_2024_agents import OctoberAgentCreateRequest, OctoberAgentName
from stint.domain.llama_stack.october_2024_turns import (
    OctoberSession,
    OctoberSessionCreateRequest,
    OctoberSessionName,
    OctoberSessionQuery,
    OctoberStepName,
    OctoberStepResponse,
    OctoberTurn,
    OctoberTurnChunk,
    OctoberTurnCreateRequest,
    OctoberTurnName,
)
from stint.domain.llama_stack.sessions import SessionCreateResponse
from stint.http.deadline import deadline_of
from stint.http.errors import body_of
from stint.http.json_responses import NULL, document, null
from stint.http.october_dependencies import (
    OctoberProviderDataDep,
    OctoberRoute,
    OctoberServicesDep,
    add_routes,
    read_params,
)
from stint.http.sse import encode_frame
from stint.http.streaming import StreamFormat, buffer_document, encode_events, stream_events, stream_frames
from stint.observability import Observation
from stint.services.october.agents import check_endpoints, to_agent_config
from stint.services.october.attachments import named_attachments
from stint.services.october.events import to_chunk, whole_turn
from stint.services.october.sessions import read_session
from stint.services.october.turns import (
    from_step,
    from_turn,
    name_turn,
    split_name,
    to_turn_request,
)
from stint.services.turns.turn_run import TurnRun

if TYPE_CHECKING:
    from stint.http.turn_attempts import FollowedTurn

router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)
CHUNK = {"anyOf": [{"$ref": "#/components/schemas/OctoberTurnChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": CHUNK}}, "description": "The turn, or its events."}
}


@router.post("/agents/create", response_model=AgentCreateResponse)
async def create_october_agent(body: OctoberAgentCreateRequest, services: OctoberServicesDep) -> Response:
    """Create an agent."""
    config = to_agent_config(body.agent_config)
    await check_endpoints(config, body.agent_config.tools, services.toolgroups.tools)
    create = partial(services.agents.create, config)
    agent_id = await services.make_creations().run(services.agents.find_created, create)
    return document(AgentCreateResponse(agent_id=agent_id))


@router.post("/agents/delete", response_model=None, responses=NULL)
async def delete_october_agent(body: OctoberAgentName, services: OctoberServicesDep) -> Response:
    """Delete an agent with its sessions and turns."""
    await services.agents.delete(body.agent_id)
    return null()


@router.post("/agents/session/create", response_model=SessionCreateResponse)
async def create_october_session(body: OctoberSessionCreateRequest, services: OctoberServicesDep) -> Response:
    """Create a session."""
    create = partial(services.sessions.create, body.agent_id, body.session_name, None)
    find = partial(services.sessions.find_created, body.agent_id)
    return document(SessionCreateResponse(session_id=await services.make_creations().run(find, create)))


@add_routes(router, "/agents/session/get", OctoberSessionQuery, response_model=OctoberSession)
async def get_october_session(
    params: Annotated[OctoberSessionQuery, Depends(read_params(OctoberSessionQuery))], services: OctoberServicesDep
) -> Response:
    """Read a session with its turns in creation order, or with those of `turn_ids`."""
    pages = await read_session(services.sessions, params, services.make_banks)
    session, others = pages.session, pages.others
    if others is None:
        return document(session)
    return StreamingResponse(write_october_session(session, others), media_type="application/json")


async def write_october_session(
    session: OctoberSession, others: AsyncGenerator[list[OctoberTurn], None]
) -> AsyncGenerator[bytes, None]:
    """Yield a session as JSON while its turns are read."""
    head, mark, tail = session.model_copy(update={"turns": []}).to_json().partition(b'"turns":[')
    yield head + mark + b",".join(turn.to_json() for turn in session.turns)
    session.turns.clear()
    async with aclosing(others):
        async for turns in others:
            yield b"".join(b"," + turn.to_json() for turn in turns)
    yield tail


@router.post("/agents/session/delete", response_model=None, responses=NULL)
async def delete_october_session(body: OctoberSessionName, services: OctoberServicesDep) -> Response:
    """Delete a session with its turns."""
    await services.sessions.delete(body.agent_id, body.session_id)
    return null()


@router.post("/agents/turn/create", response_model=OctoberTurnChunk, responses=STREAMS)
async def create_october_turn(
    body: OctoberTurnCreateRequest, request: Request, services: OctoberServicesDep, keys: OctoberProviderDataDep
) -> Response:
    """Create a turn. With `stream` true, the response is a stream of events, else the last one of these."""
    asked, deadline, attempt = to_turn_request(body), deadline_of(request), find_attempt()
    if attempt.repeated or attempt.retry_count:
        from stint.http.turn_attempts import find_earlier_turn  # noqa: PLC0415 - not at the start of a function

        earlier = await find_earlier_turn(services, body.agent_id, body.session_id, deadline)
        if earlier is not None:
            return await answer_with_earlier(services, earlier, body)
    with named_attachments(body):
        turn = await services.turns.start(body.agent_id, body.session_id, asked, deadline, keys)
    return await answer_turn(request, services, turn, body)


async def answer_turn(
    request: Request, services: OctoberServices, turn: TurnRun, body: OctoberTurnCreateRequest
) -> Response:
    """Run a started turn, and return a response in the requested form."""
    observation: Observation = request.scope["stint.observation"]
    events = observation.yield_events(services.turns.run(turn), turn.used)
    if body.stream:
        chunks = convert_events(events, body.session_id)
        response = await stream_events(chunks, StreamFormat(encode_chunk), services.heartbeat_seconds, turn)
    else:
        response = await buffer_document(last_chunk(events), services.heartbeat_seconds, turn)
    response.background = BackgroundTask(services.turns.write_segments, turn)
    return response


async def answer_with_earlier(
    services: OctoberServices, turn: "FollowedTurn", body: OctoberTurnCreateRequest
) -> Response:
    """Return the response of a turn that an earlier attempt created."""
    from stint.http.turn_attempts import encode_tail_error  # noqa: PLC0415 - not at the start of a function

    events = (numbered.event async for numbered in turn.read_events())
    if body.stream:
        form = StreamFormat(encode_chunk, encode_error=encode_tail_error)
        return stream_frames(encode_events(convert_events(events, body.session_id), form), services.heartbeat_seconds)
    return await buffer_document(last_chunk(events), services.heartbeat_seconds, turn)


async def convert_events(
    events: AsyncGenerator[Event, None], session_id: str
) -> AsyncGenerator[OctoberTurnChunk | TurnFailed, None]:
    async with aclosing(events):
        async for event in events:
            yield to_chunk(event, session_id)


def encode_chunk(chunk: OctoberTurnChunk | TurnFailed) -> bytes:
    """Write one event: a `data:` line and an empty line, which is all that the client reads."""
    if isinstance(chunk, TurnFailed):
        error = body_of(chunk.error) | {"turn_id": name_turn(chunk.turn.session_id, chunk.turn.turn_id)}
        return encode_frame(json.dumps({"error": error}, ensure_ascii=False).encode())
    return encode_frame(chunk.to_json())


async def last_chunk(events: AsyncGenerator[Event, None]) -> OctoberTurnChunk:
    """Return the last event of a turn."""
    terminal = [event async for event in events if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed)]
    [event] = terminal
    return whole_turn(event.turn)


@add_routes(router, "/agents/turn/get", OctoberTurnName, response_model=OctoberTurn)
async def get_october_turn(
    params: Annotated[OctoberTurnName, Depends(read_params(OctoberTurnName))], services: OctoberServicesDep
) -> Response:
    """Read a turn, whose id contains that of its session."""
    return document(from_turn(await services.turns.get(params.agent_id, *split_name(params.turn_id))))


@add_routes(router, "/agents/step/get", OctoberStepName, response_model=OctoberStepResponse)
async def get_october_step(
    params: Annotated[OctoberStepName, Depends(read_params(OctoberStepName))], services: OctoberServicesDep
) -> Response:
    """Read a step of a turn."""
    session_id, turn_id = split_name(params.turn_id)
    step = await services.turns.step(params.agent_id, session_id, turn_id, params.step_id)
    return document(OctoberStepResponse(step=from_step(step, name_turn(session_id, turn_id))))
