"""Advice for requests of routes, or of methods, that do not exist.

Most come from a client with a wrong base URL, which lacks `/v1` or has it twice, or of APIs of OpenAI that this server
does not have. API Gateway sends every path without a route of its own to the function `registry`, and those with a
prefix of October 2024, such as `/models/`, to `october`, after its authorizer has checked the caller.
"""

from itertools import takewhile

from fastapi import Request
from starlette.routing import Route

from stint.domain.errors import LONGEST_PARAM, shorten

INSTEAD = {
    "assistants": "Create agents with POST /v1/agents, or send instructions and tools to POST /v1/responses.",
    "threads": "Create conversations with POST /v1/conversations, and name them in POST /v1/responses.",
    "prompts": "Send the text as instructions to POST /v1/responses, or store it in an agent with POST /v1/agents.",
    "moderations": "Check messages with POST /v1/safety/run-shield. GET /v1/shields lists the shields.",
    "batches": "Send each request to POST /v1/responses with background true.",
}
"""APIs of OpenAI that do not exist here, and what to use instead."""

BASE_URL = (
    "Check the base URL of the client: that of OpenAI's clients ends in one /v1, and that of Llama Stack's clients in "
    "none, because they add it."
)
RIGHT_BASES = (["v1"], ["v1", "openai", "v1"])
EMPTY_PART = "A part of the path is empty: is a variable in it, such as $AGENT_ID, not set?"
LIST = "GET /v1/inspect/routes lists the routes."


def describe_unknown_route(request: Request) -> str:
    """Return the message for a route that does not exist, with what to use instead."""
    path = request.scope.get("stint.path", request.scope["path"])
    where = shorten(f"{request.method} {path}", LONGEST_PARAM)
    return f"The route {where} does not exist. {advise(request, path)}"


def advise(request: Request, path: str) -> str:
    """Return what to do about a path that does not exist."""
    if "//" in path:
        return EMPTY_PART
    parts = [part for part in path.removeprefix(request.scope.get("root_path", "")).split("/") if part]
    base = list(takewhile(lambda part: part in ("v1", "openai"), parts))
    rest = parts[len(base) :]
    if rest and rest[0] in INSTEAD:
        return INSTEAD[rest[0]]
    if not rest or base in RIGHT_BASES:  # without a look at the routes, whose modules may not be loaded
        return LIST
    return BASE_URL if find_routes(request, f"/v1/{'/'.join(rest)}") else LIST


def methods_of(request: Request) -> list[str]:
    """Return the methods of a request's path in the whole API, and in the API of its function."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    own = [route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return sorted({method for route in (*own, *find_routes(request, path)) for method in route.methods or ()})


def find_routes(request: Request, path: str) -> list[Route]:
    """Return the routes of the whole API that have a path, without those of October 2024."""
    routers = request.app.state.list_routers()
    routes = (route for router in routers for route in router.routes if isinstance(route, Route))
    return [route for route in routes if route.path_regex.match(path)]
