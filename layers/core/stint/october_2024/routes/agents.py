"""Routes of the API of October 2024: agents, sessions, turns and steps."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from stint.domain.llama_stack.agents import AgentCreateResponse
from stint.domain.llama_stack.events import NumberedEvent, TurnFailed
from stint.domain.llama_stack.sessions import SessionCreateResponse
from stint.domain.llama_stack.turns import Turn
from stint.http.errors import body_of
from stint.http.json_responses import NULL, document, null
from stint.http.scopes import READ, RETRIED, RUN, requires
from stint.http.sse import encode_frame
from stint.http.streaming import RunFormat, StreamFormat, answer_run, context_of, encode_stream_error
from stint.october_2024.agents import check_endpoints, to_agent_config
from stint.october_2024.attachments import named_attachments
from stint.october_2024.events import to_chunk, whole_turn
from stint.october_2024.routes.dependencies import (
    OctoberProviderDataDep,
    OctoberRoute,
    OctoberServicesDep,
    add_routes,
    read_params,
)
from stint.october_2024.schemas.agents import OctoberAgentCreateRequest, OctoberAgentName
from stint.october_2024.schemas.turns import (
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
from stint.october_2024.sessions import read_session
from stint.october_2024.turns import (
    from_step,
    from_turn,
    name_turn,
    split_name,
    to_turn_request,
)

router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)
CHUNK = {"anyOf": [{"$ref": "#/components/schemas/OctoberTurnChunk"}, {"$ref": "#/components/schemas/StreamError"}]}
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": CHUNK}}, "description": "The turn, or its events."}
}


@router.post("/agents/create", response_model=AgentCreateResponse)
@requires("use", repeated=RETRIED)
async def create_october_agent(
    body: OctoberAgentCreateRequest, request: Request, services: OctoberServicesDep
) -> Response:
    """Create an agent."""
    from stint.http.agent_warnings import warn_of_missing_names  # noqa: PLC0415 - not at the start of a function

    config = to_agent_config(body.agent_config)
    await check_endpoints(config, body.agent_config.tools, services.toolgroups.tools)
    create = partial(services.agents.create, config)
    agent_id = await services.creations.run(services.agents.find_created, create)
    await warn_of_missing_names(request, config, services.toolgroups.tools)
    return document(AgentCreateResponse(agent_id=agent_id))


@router.post("/agents/delete", response_model=None, responses=NULL)
@requires("use")
async def delete_october_agent(body: OctoberAgentName, services: OctoberServicesDep) -> Response:
    """Delete an agent with its sessions and turns."""
    await services.agents.delete(body.agent_id)
    return null()


@router.post("/agents/session/create", response_model=SessionCreateResponse)
@requires("use", repeated=RETRIED)
async def create_october_session(body: OctoberSessionCreateRequest, services: OctoberServicesDep) -> Response:
    """Create a session."""
    create = partial(services.sessions.create, body.agent_id, body.session_name, None, budget=body.budget)
    find = partial(services.sessions.find_created, body.agent_id)
    return document(SessionCreateResponse(session_id=await services.creations.run(find, create)))


@add_routes(router, "/agents/session/get", OctoberSessionQuery, response_model=OctoberSession)
@requires("use", repeated=READ)
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
@requires("use")
async def delete_october_session(body: OctoberSessionName, services: OctoberServicesDep) -> Response:
    """Delete a session with its turns."""
    await services.sessions.delete(body.agent_id, body.session_id)
    return null()


@router.post("/agents/turn/create", response_model=OctoberTurnChunk, responses=STREAMS)
@requires("use", repeated=RUN)
async def create_october_turn(
    body: OctoberTurnCreateRequest, request: Request, services: OctoberServicesDep, keys: OctoberProviderDataDep
) -> Response:
    """Create a turn. With `stream` true, the response is a stream of events, else the last one of these."""
    context = context_of(request, keys)
    with named_attachments(body):
        handle = await services.turn_requests.submit(body.agent_id, body.session_id, to_turn_request(body), context)
    beat, form = services.heartbeat_seconds, format_of(body.session_id)
    return await answer_run(handle, form, stream=body.stream, heartbeat_seconds=beat, deadline=context.deadline)


def format_of(session_id: str) -> RunFormat[NumberedEvent, Turn]:
    """Return the converter of a turn. Its events have the id of its session."""
    events = StreamFormat(partial(encode_event, session_id), encode_error=encode_stream_error)
    return RunFormat(events, to_schema=whole_turn)


def encode_event(session_id: str, numbered: NumberedEvent) -> bytes:
    """Write one event: a `data:` line and an empty line, which is all that the client reads."""
    chunk = to_chunk(numbered.event, session_id)
    if isinstance(chunk, TurnFailed):
        error = body_of(chunk.error) | {"turn_id": name_turn(chunk.turn.session_id, chunk.turn.turn_id)}
        return encode_frame(json.dumps({"error": error}, ensure_ascii=False).encode())
    return encode_frame(chunk.to_json())


@add_routes(router, "/agents/turn/get", OctoberTurnName, response_model=OctoberTurn)
@requires("use", repeated=READ)
async def get_october_turn(
    params: Annotated[OctoberTurnName, Depends(read_params(OctoberTurnName))], services: OctoberServicesDep
) -> Response:
    """Read a turn, whose id contains that of its session."""
    return document(from_turn(await services.turns.get(params.agent_id, *split_name(params.turn_id))))


@add_routes(router, "/agents/step/get", OctoberStepName, response_model=OctoberStepResponse)
@requires("use", repeated=READ)
async def get_october_step(
    params: Annotated[OctoberStepName, Depends(read_params(OctoberStepName))], services: OctoberServicesDep
) -> Response:
    """Read a step of a turn."""
    session_id, turn_id = split_name(params.turn_id)
    step = await services.turns.step(params.agent_id, session_id, turn_id, params.step_id)
    return document(OctoberStepResponse(step=from_step(step, name_turn(session_id, turn_id))))
