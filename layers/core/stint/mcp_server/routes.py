"""The routes of MCP: the endpoints of all agents and of one, and the metadata of this API as a protected resource.

`GET` and `DELETE` of an endpoint are not allowed: it has no stream of its own, and no sessions of the protocol.
"""

from typing import Any

from fastapi import APIRouter, Request, Response

from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.json_responses import document
from stint.http.requests import StrictRoute
from stint.http.scopes import CALL, requires
from stint.mcp_server.endpoint import McpEndpoint
from stint.mcp_server.protected_resource import describe_resource
from stint.mcp_server.schemas import ResourceDocument

MESSAGE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "title": "McpMessage",
                    "description": "One JSON-RPC 2.0 message of MCP (2026-07-28, 2025-11-25). See docs/protocols.md.",
                    "properties": {
                        "jsonrpc": {"const": "2.0"},
                        "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                        "method": {"type": "string"},
                        "params": {"type": "object"},
                    },
                    "required": ["jsonrpc", "method"],
                }
            }
        },
    }
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/event-stream": {"schema": {"type": "object"}},
        },
        "description": "The result or the error of the request, or a stream that ends with it.",
    },
    202: {"description": "The notification is accepted."},
    "4XX": {
        "content": {"application/json": {"schema": {"type": "object"}}},
        "description": "An error of JSON-RPC. Before the message is read, the error of all other routes.",
    },
}

router = APIRouter(tags=["MCP"], route_class=StrictRoute)
agent_router = APIRouter(tags=["MCP"], route_class=AgentRoute)


@router.get("/v1/mcp/.well-known/oauth-protected-resource", response_model=ResourceDocument)
@requires(None)
async def get_mcp_resource(request: Request) -> Response:
    """Describe the MCP endpoint as a protected resource (RFC 9728), for clients that look for its issuer of tokens."""
    return document(describe_resource(request.app.state.read_settings()))


@router.get("/.well-known/oauth-protected-resource", include_in_schema=False)
@requires(None)
async def get_protected_resource(request: Request) -> Response:
    """Describe the MCP endpoint at the path of a domain of its own."""
    return await get_mcp_resource(request)


@router.get("/.well-known/oauth-protected-resource/v1/mcp", include_in_schema=False)
@requires(None)
async def get_protected_resource_of_path(request: Request) -> Response:
    """Describe the MCP endpoint at the path that clients try first at a domain of its own."""
    return await get_mcp_resource(request)


@router.post("/v1/mcp", response_model=None, responses=ANSWERS, openapi_extra=MESSAGE)
@requires("use", repeated=CALL)
async def send_mcp_message(request: Request, services: AgentsServicesDep) -> Response:
    """Send a message of MCP. The tools are all agents that the caller may use."""
    return await McpEndpoint(request, services).answer()


@agent_router.post("/v1/agents/{agent_id}/mcp", response_model=None, responses=ANSWERS, openapi_extra=MESSAGE)
@requires("use", repeated=CALL)
async def send_agent_mcp_message(agent_id: str, request: Request, services: AgentsServicesDep) -> Response:
    """Send a message of MCP. The only tool is the agent of the path."""
    return await McpEndpoint(request, services, agent_id).answer()


router.routes.extend(agent_router.routes)
