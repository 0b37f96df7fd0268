"""Paths of OpenAI's Agents API for what sessions here never have, and for what this server does not support.

Sessions have no subagents and no artifacts: their lists are empty, and no such object exists. Environments are refused
by name.
"""

from fastapi import APIRouter, Request, Response

from stint.domain.errors import NotFound, NotSupported
from stint.domain.openai.lists import ListObject
from stint.domain.schema import Schema
from stint.http.dependencies import AgentRoute
from stint.http.json_responses import document
from stint.http.scopes import requires
from stint.openai_agents.routes.dependencies import OpenAIAgentsServicesDep

SESSION = "/v1/agents/sessions/{session_id}"
KINDS = {"subagents": "Subagent", "artifacts": "Artifact"}
ENVIRONMENTS = "/v1/agents/environments"

router = APIRouter(tags=["OpenAI Agents"], route_class=AgentRoute)


class AgentChild(Schema):
    """An object that no session has."""

    id: str


async def list_nothing(session_id: str, services: OpenAIAgentsServicesDep) -> Response:
    """Return an empty list. Raises NotFound if there is no such session."""
    await services.reader.open(session_id)
    return document(ListObject[AgentChild](data=[]))


async def find_nothing(session_id: str, request: Request, services: OpenAIAgentsServicesDep) -> Response:
    """Raise NotFound for the session, or for the object in it."""
    await services.reader.open(session_id)
    kind, name = request.scope["path"].partition(f"/{session_id}/")[2].split("/")[:2]
    raise NotFound(KINDS[kind], name)


async def refuse_environment() -> Response:
    """Refuse a request of an environment, which this server does not have."""
    raise NotSupported("The Agents API's environments are not supported. Create sessions with the environment none.")


for name in KINDS:
    router.add_api_route(f"{SESSION}/{name}", requires("use")(list_nothing), include_in_schema=False)
    router.add_api_route(
        f"{SESSION}/{name}/{{rest:path}}",
        requires("use")(find_nothing),
        methods=["GET", "DELETE"],
        response_model=None,
        include_in_schema=False,
    )
for path in (ENVIRONMENTS, f"{ENVIRONMENTS}/{{rest:path}}"):
    router.add_api_route(
        path,
        requires("use")(refuse_environment),
        methods=["GET", "POST", "DELETE"],
        response_model=None,
        include_in_schema=False,
    )
