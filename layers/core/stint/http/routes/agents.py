"""Routes of the agents group.

A creation may be sent again, and has one effect (`services/idempotency/creations.py`). What its turns would not find is
no reason to refuse an agent, because it may be registered later: a header names it.
"""

from contextlib import nullcontext
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from stint.domain.llama_stack.agents import Agent, AgentCreateRequest, AgentCreateResponse, AgentList
from stint.domain.llama_stack.sessions import SessionCreateRequest, SessionCreateResponse, SessionList
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.tools import AgentToolGroupWithArgs
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.entry_windows import EntryWindow, refuse_index
from stint.http.json_responses import NULL, document, listing, null
from stint.http.metadata_filters import METADATA_PARAMETER
from stint.http.scopes import RETRIED, requires

router = APIRouter(prefix="/v1/agents", tags=["Agents"], route_class=AgentRoute)


@router.post("", response_model=AgentCreateResponse)
@requires("use", repeated=RETRIED)
async def create_agent(body: AgentCreateRequest, request: Request, services: AgentsServicesDep) -> Response:
    """Create an agent. A header names models, toolgroups, tools and shields that its turns would not find."""
    from stint.http.agent_warnings import warn_of_missing_names  # noqa: PLC0415 - not at the start of a function

    if any(isinstance(group, AgentToolGroupWithArgs) for group in body.agent_config.toolgroups):
        from stint.services.agents.endpoints import check_endpoints  # noqa: PLC0415 - many agents have no args

        await check_endpoints(body.agent_config.toolgroups, services.toolgroups.tools)
    create = partial(services.agents.create, body.agent_config)
    agent_id = await services.creations.run(services.agents.find_created, create)
    await warn_of_missing_names(request, body.agent_config, services.toolgroups.tools)
    return document(AgentCreateResponse(agent_id=agent_id))


@router.get("", response_model=AgentList, openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_agents(services: AgentsServicesDep, window: EntryWindow) -> Response:
    """List agents by creation, oldest first by default."""
    page = await services.agents.list(window)
    return listing(page, "/v1/agents", position_of=(lambda agent: agent.agent_id) if window.by_id else None)


@router.get("/{agent_id}", response_model=Agent)
@requires("use")
async def get_agent(agent_id: str, services: AgentsServicesDep) -> Response:
    """Read an agent."""
    return document(await services.agents.get(agent_id))


@router.delete("/{agent_id}", response_model=None, responses=NULL)
@requires("use")
async def delete_agent(agent_id: str, services: AgentsServicesDep) -> Response:
    """Delete an agent with its sessions and turns."""
    await services.agents.delete(agent_id)
    return null()


@router.post("/{agent_id}/session", response_model=SessionCreateResponse, tags=["Sessions"])
@requires("use", repeated=RETRIED)
async def create_session(agent_id: str, body: SessionCreateRequest, services: AgentsServicesDep) -> Response:
    """Create a session, which starts with copies of another one's turns if `fork_from` names one."""
    create = partial(
        services.sessions.create,
        agent_id,
        body.session_name,
        body.expires_after,
        fork_from=body.fork_from,
        metadata=body.metadata,
        budget=body.budget,
    )
    find = partial(services.sessions.find_created, agent_id)
    async with services.meters.request() if body.fork_from else nullcontext():
        return document(SessionCreateResponse(session_id=await services.creations.run(find, create)))


@router.get("/{agent_id}/sessions", response_model=SessionList, tags=["Sessions"], openapi_extra=METADATA_PARAMETER)
@requires("use")
async def list_sessions(
    agent_id: str,
    services: AgentsServicesDep,
    window: EntryWindow,
    include: Annotated[list[Literal["last_turn"]] | None, Query()] = None,
    status: Annotated[TurnStatus | None, Query(description="of the last turn, which the entries then have")] = None,
) -> Response:
    """List the sessions of an agent by creation, oldest first by default, without their turns."""
    if status is not None:
        refuse_index(window.start, "status")
    page = await services.sessions.list(agent_id, window, last_turns=bool(include), status=status)
    shows_position = window.by_id or include or status is not None
    position_of = (lambda session: session.session_id) if shows_position else None
    return listing(page, f"/v1/agents/{agent_id}/sessions", position_of=position_of)


@router.delete("/{agent_id}/session/{session_id}", response_model=None, responses=NULL, tags=["Sessions"])
@requires("use")
async def delete_session(agent_id: str, session_id: str, services: AgentsServicesDep) -> Response:
    """Delete a session with its turns."""
    await services.sessions.delete(agent_id, session_id)
    return null()
