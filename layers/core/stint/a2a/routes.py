"""The routes of A2A: one for all calls to an agent, its card, and the open card of the server.

An error of a call is an answer of JSON-RPC, except that of an unknown agent: then the URL is wrong, and the status says
so. In a stack, the URLs of cards have the domain that API Gateway says was called, which no header changes.
"""

from hashlib import sha256
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from stint.a2a.calls import METHODS, VERSION_HEADER, answer_failure, check_call
from stint.a2a.cards import AgentCard, CallerSchemes, card_of_agent, card_of_server
from stint.a2a.methods import HANDLERS, AgentCall
from stint.domain.errors import NotFound, StintError
from stint.http.dependencies import AgentRoute, AgentsServicesDep
from stint.http.json_rpc import JsonRpcError, MessageId, parse_message, read_value
from stint.http.middleware.authentication import request_context_of
from stint.http.requests import StrictRoute
from stint.http.routes.pages import base_path_of, base_url_of
from stint.http.scopes import CALL, requires
from stint.http.streaming import RequestContextDep

AGENT = "/v1/agents/{agent_id}/a2a"
CARD = "/.well-known/agent-card.json"
CARD_HEADERS = {"cache-control": "private, max-age=60", "vary": "host, authorization"}

CALL_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "title": "A2ACall",
                    "description": "A call of A2A 1.0 by JSON-RPC 2.0. See docs/protocols.md.",
                    "properties": {
                        "jsonrpc": {"const": "2.0"},
                        "id": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                        "method": {"enum": [*METHODS]},
                        "params": {"type": "object"},
                    },
                    "required": ["jsonrpc", "id", "method"],
                }
            }
        },
    }
}
CALL_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {media: {"schema": {"type": "object"}} for media in ("application/json", "text/event-stream")},
        "description": "The result or the error of the call, or a stream of results.",
    }
}

router = APIRouter(tags=["A2A"], route_class=AgentRoute)


@router.post(AGENT, response_model=None, responses=CALL_ANSWERS, openapi_extra=CALL_BODY)
@requires("use", repeated=CALL)
async def call_agent(
    agent_id: str,
    request: Request,
    services: AgentsServicesDep,
    context: RequestContextDep,
    version: Annotated[str, Query(alias=VERSION_HEADER, description="in place of the header A2A-Version")] = "",
) -> Response:
    """Call a method of A2A 1.0 by JSON-RPC."""
    message_id: MessageId = None
    try:
        message = parse_message(await read_value(request))
        message_id = message.id
        check_call(message, request.headers.get(VERSION_HEADER) or version)
        return await HANDLERS[message.method](AgentCall(agent_id, message, request, services, context))
    except JsonRpcError as error:
        return answer_failure(message_id if error.message_id is None else error.message_id, error)
    except StintError as error:
        if isinstance(error, NotFound) and error.code == "agent_not_found":
            raise  # the URL is wrong, not the call
        return answer_failure(message_id, error)


@router.get(AGENT + CARD, response_model=AgentCard)
@requires("use")
async def get_agent_card(agent_id: str, request: Request, services: AgentsServicesDep) -> Response:
    """Read the A2A card of an agent."""
    agent = await services.agents.get(agent_id)
    path = f"/v1/agents/{agent_id}/a2a"
    return answer_card(request, card_of_agent(agent, base_of(request, path + CARD) + path, schemes_of(request)))


def base_of(request: Request, path: str) -> str:
    """Return the URL before `path`. API Gateway says which of its domains was called, which no header changes."""
    domain = str(request_context_of(request.scope).get("domainName") or "")
    host = request.headers.get("host", "")
    if domain in ("", host, host.rpartition(":")[0]):  # a server on this machine has a port
        return base_url_of(request, path)
    return f"https://{domain}{base_path_of(request, path)}"


def schemes_of(request: Request) -> CallerSchemes:
    settings = request.app.state.read_settings()
    return CallerSchemes(settings.auth == "authorizer", settings.oidc_issuer)


def answer_card(request: Request, card: AgentCard) -> Response:
    """Return a card, or that the client has it."""
    body = card.to_json()
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    headers: dict[str, Any] = CARD_HEADERS | {"etag": etag}
    if request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


@requires(None)
async def get_server_card(request: Request) -> Response:
    """Read the A2A card of the server, which names no agent."""
    return answer_card(request, card_of_server(base_of(request, CARD) + AGENT, schemes_of(request)))


# Without a caller, there are no services by which an AgentRoute names its lines.
router.add_api_route(CARD, get_server_card, methods=["GET"], response_model=AgentCard, route_class_override=StrictRoute)
