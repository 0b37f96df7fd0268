"""Saved agents of OpenAI's Agents API, at the paths of Llama Stack's agents."""

from functools import partial

from fastapi import APIRouter, Request, Response

from stint.dataclasses import replace
from stint.domain.llama_stack.agents import Agent
from stint.domain.openai.lists import ListObject
from stint.http.agent_warnings import warn_of_missing_names
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.json_responses import document
from stint.http.metadata_filters import MetadataFilter
from stint.http.scopes import RETRIED, requires
from stint.openai_agents.agents import from_agent, to_agent_config, update_agent_config
from stint.openai_agents.routes.dependencies import ListWindowDep
from stint.openai_agents.schemas.agents import AgentCreateParams, AgentDeleted, AgentObject, AgentUpdateParams
from stint.openai_agents.session_reader import ROUNDS
from stint.openai_agents.tool_checks import check_tools

router = APIRouter(prefix="/v1/agents", tags=["OpenAI Agents"], route_class=AgentRoute)


def show_agent(agent: Agent) -> AgentObject:
    return from_agent(agent.agent_id, agent.agent_config, agent.created_at, agent.updated_at or agent.created_at)


@router.post("", response_model=AgentObject, include_in_schema=False)
@requires("use", repeated=RETRIED)
async def create_saved_agent(body: AgentCreateParams, request: Request, services: AgentsServicesDep) -> Response:
    """Create an agent."""
    config, tools = to_agent_config(body), services.toolgroups.tools
    await check_tools(config, tools, "tools")
    agent_id = await services.creations.run(services.agents.find_created, partial(services.agents.create, config))
    await warn_of_missing_names(request, config, tools)
    return document(show_agent(await services.agents.get(agent_id)))


@router.get("", response_model=ListObject[AgentObject], include_in_schema=False)
@requires("use")
async def list_saved_agents(services: AgentsServicesDep, window: ListWindowDep, metadata: MetadataFilter) -> Response:
    """List agents by creation, newest first; with `metadata[key]=value`, those that have it."""
    part = window.filtered(metadata)
    for _ in range(ROUNDS):
        page = await services.agents.list(part)
        if page.data or not page.has_more:
            break
        part = replace(part, after=page.position)
    shown = [show_agent(agent) for agent in page.data]
    return document(ListObject[AgentObject].of(shown, page.has_more, page.position))


@router.get("/{agent_id}", response_model=AgentObject, include_in_schema=False)
@requires("use")
async def get_saved_agent(agent_id: str, services: AgentsServicesDep) -> Response:
    """Read an agent."""
    return document(show_agent(await services.agents.get(agent_id)))


@router.post("/{agent_id}", response_model=AgentObject, include_in_schema=False)
@requires("use")
async def update_saved_agent(agent_id: str, body: AgentUpdateParams, services: AgentsServicesDep) -> Response:
    """Change an agent for sessions that are created from now on."""
    agent = (await services.agents.get(agent_id)).agent_config
    await check_tools(update_agent_config(agent, body), services.toolgroups.tools, "tools")
    changed = await services.agents.change(agent_id, partial(update_agent_config, params=body))
    return document(show_agent(changed))


@router.delete("/{agent_id}", response_model=AgentDeleted, include_in_schema=False)
@requires("use")
async def delete_saved_agent(agent_id: str, services: AgentsServicesDep) -> Response:
    """Delete an agent with its sessions."""
    await services.agents.delete(agent_id)
    return document(AgentDeleted(id=agent_id))
