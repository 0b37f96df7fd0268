"""Routes of the agents group."""

from functools import partial

from fastapi import APIRouter, Response

from stint.domain.llama_stack.agents import Agent, AgentCreateRequest, AgentCreateResponse, AgentList
from stint.domain.llama_stack.sessions import SessionCreateRequest, SessionCreateResponse, SessionList
from stint.domain.tools import AgentToolGroupWithArgs
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.json_responses import NULL, document, listing, null, window_of
from stint.http.scopes import RETRIED, requires

router = APIRouter(prefix="/v1/agents", tags=["Agents"], route_class=AgentRoute)


@router.post("", response_model=AgentCreateResponse)
@requires("use", repeated=RETRIED)
async def create_agent(body: AgentCreateRequest, services: AgentsServicesDep) -> Response:
    """Create an agent."""
    if any(isinstance(group, AgentToolGroupWithArgs) for group in body.agent_config.toolgroups):
        from stint.services.agents.endpoints import check_endpoints  # noqa: PLC0415 - many agents have no args

        await check_endpoints(body.agent_config.toolgroups, services.toolgroups.tools)
    create = partial(services.agents.create, body.agent_config)
    return document(AgentCreateResponse(agent_id=await services.creations.run(services.agents.find_created, create)))


@router.get("", response_model=AgentList)
@requires("use")
async def list_agents(
    services: AgentsServicesDep, start_index: int | None = None, limit: int | None = None
) -> Response:
    """List agents in creation order."""
    page = await services.agents.list(window_of(start_index, limit))
    return listing(page, "/v1/agents")


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
    """Create a session."""
    create = partial(services.sessions.create, agent_id, body.session_name, body.expires_after)
    find = partial(services.sessions.find_created, agent_id)
    return document(SessionCreateResponse(session_id=await services.creations.run(find, create)))


@router.get("/{agent_id}/sessions", response_model=SessionList, tags=["Sessions"])
@requires("use")
async def list_sessions(
    agent_id: str, services: AgentsServicesDep, start_index: int | None = None, limit: int | None = None
) -> Response:
    """List the sessions of an agent in creation order, without their turns."""
    page = await services.sessions.list(agent_id, window_of(start_index, limit))
    return listing(page, f"/v1/agents/{agent_id}/sessions")


@router.delete("/{agent_id}/session/{session_id}", response_model=None, responses=NULL, tags=["Sessions"])
@requires("use")
async def delete_session(agent_id: str, session_id: str, services: AgentsServicesDep) -> Response:
    """Delete a session with its turns."""
    await services.sessions.delete(agent_id, session_id)
    return null()
