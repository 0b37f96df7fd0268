"""The description of the whole API: its routes and its OpenAPI document.

Each function has only its own routes. The document describes all of them, so the first request for it loads the routers
of the other functions, and the classes of events, which no route returns as its response.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, RootModel

from stint.domain.llama_stack.registry import LLAMA_STACK_VERSION, Route, RouteList
from stint.domain.openai.chat_output import ChatCompletionChunk
from stint.http.deferred_imports import NO_TELEMETRY
from stint.http.errors import ErrorResponse
from stint.http.examples import add_examples
from stint.http.json_responses import document
from stint.http.middleware.paths import OPENAI_PREFIX
from stint.http.requests import LazyRoute, scoped_routes
from stint.http.routes import pages, registry, shields, tools
from stint.http.scopes import requires
from stint.http.sse import StreamError

router = APIRouter(prefix="/v1", tags=["Registry"], route_class=LazyRoute)
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "The request is invalid."},
    "5XX": {"model": ErrorResponse, "description": "The server, or a model's provider, failed."},
}
DESCRIPTION = """\
Two APIs over one agent loop.

* **Llama Stack's Agents API**, below `/v1`: agents, sessions, turns, tools, shields, models.
  Set `base_url` of `llama-stack-client` to the server's URL.
* **OpenAI's API**, below `/v1` and, as in Llama Stack, `/v1/openai/v1`: responses, conversations,
  chat completions, models. Set `base_url` of `openai` to either address.
"""
LLAMA_STACK_API, OPENAI_API = "Llama Stack's Agents API", "OpenAI's API"
TAGS = [
    {"name": "Agents", "description": f"{LLAMA_STACK_API}: agents."},
    {"name": "Sessions", "description": f"{LLAMA_STACK_API}: sessions of an agent."},
    {"name": "Turns", "description": f"{LLAMA_STACK_API}: turns of a session, streamed or not, and their steps."},
    {"name": "Inference", "description": f"{LLAMA_STACK_API}: inference without an agent, streamed or not."},
    {"name": "Tools", "description": f"{LLAMA_STACK_API}: toolgroups, their tools, and the tool runtime."},
    {"name": "Shields", "description": f"{LLAMA_STACK_API}: shields."},
    {
        "name": "Registry",
        "description": f"{LLAMA_STACK_API}: models (also for OpenAI's API), providers, health, version.",
    },
    {
        "name": "Vector DBs",
        "description": "Llama Stack: vector databases, their chunks, and the tool that retrieves context from them.",
    },
    {"name": "Responses", "description": f"{OPENAI_API}: responses, at /v1 and at /v1/openai/v1."},
    {"name": "Conversations", "description": f"{OPENAI_API}: conversations, at /v1 and at /v1/openai/v1."},
    {"name": "Chat", "description": f"{OPENAI_API}: chat completions, at /v1 and at /v1/openai/v1."},
    {"name": "Embeddings", "description": "Embeddings of both APIs; OpenAI's at /v1 and at /v1/openai/v1."},
    {"name": "Files", "description": f"{OPENAI_API}: files, at /v1 and at /v1/openai/v1."},
    {"name": "Containers", "description": f"{OPENAI_API}: containers of code, at /v1 and at /v1/openai/v1."},
    {"name": "Administration", "description": "API keys and stops, for callers with the scope `admin`."},
    {"name": "End users", "description": "What belongs to end users, for callers with the scope `admin`."},
    {"name": "Vector stores", "description": f"{OPENAI_API}: vector stores, at /v1 and at /v1/openai/v1."},
]
OPENAI = (
    "/v1/responses",
    "/v1/conversations",
    "/v1/chat/",
    "/v1/completions",
    "/v1/models",
    "/v1/files",
    "/v1/uploads",
    "/v1/containers",
    "/v1/vector_stores",
    "/v1/embeddings",
)

SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`stk_...`) or a token of the configured OIDC issuer.",
    }
}


@router.get("/inspect/routes", response_model=RouteList)
@requires("use")
async def list_routes() -> Response:
    """List the routes of the whole API."""
    return document(RouteList(data=list(routes_of_api())))


@router.get("/openapi.json", response_model=None)
@requires("use")
async def get_openapi(request: Request) -> Response:
    """Read the OpenAPI document of the whole API."""
    return JSONResponse(describe_api_at(pages.base_url_of(request, "/v1/openapi.json")))


@cache
def list_parts() -> tuple[APIRouter, ...]:
    """Return the routers of all functions. Those of other functions are loaded when they are needed."""
    from stint.http.routes import (  # noqa: PLC0415
        admin,
        agents,
        chat,
        completions,
        containers,
        conversations,
        embeddings,
        end_users,
        files,
        inference,
        responses,
        stored_chats,
        turns,
        uploads,
        vector_dbs,
        vector_stores,
    )

    return (
        agents.router,
        turns.router,
        responses.router,
        conversations.router,
        chat.router,
        stored_chats.router,
        completions.router,
        inference.router,
        files.router,
        embeddings.router,
        uploads.router,
        containers.router,
        vector_stores.router,
        vector_dbs.router,
        end_users.router,
        tools.router,
        shields.router,
        admin.router,
        registry.router,
        router,
        pages.router,
    )


def routes_of_api() -> Iterator[Route]:
    for part in list_parts():
        for route in part.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for path in addresses_of(route):
                    yield from (Route(route=path, method=method) for method in sorted(route.methods or ()))


def addresses_of(route: APIRoute) -> list[str]:
    """Return the paths of a route. Those of the OpenAI API have two."""
    return [route.path, route.path.replace("/v1/", OPENAI_PREFIX, 1)] if route.path.startswith(OPENAI) else [route.path]


def describe_api_at(url: str) -> dict[str, Any]:
    """Return the OpenAPI document with the servers at a URL. The operations of OpenAI's API have two paths."""
    own = {"url": url, "description": "Both APIs"}
    alias = {"url": f"{url}/v1/openai", "description": "OpenAI's API at Llama Stack's address, /v1/openai/v1"}
    described = describe_api()
    paths = {
        path: {method: operation | {"servers": [own, alias]} for method, operation in item.items()}
        if path.startswith(OPENAI)
        else item
        for path, item in described["paths"].items()
    }
    return described | {"servers": [own], "paths": paths}


@cache
def describe_api() -> dict[str, Any]:
    """Make the OpenAPI document. Operations are named after their functions."""

    app = FastAPI(
        telemetry=NO_TELEMETRY,
        title="Stint",
        version=LLAMA_STACK_VERSION,
        summary="Llama Stack's Agents API 0.2.12 and OpenAI's Responses API, on AWS.",
        description=DESCRIPTION,
        openapi_tags=TAGS,
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    for part in list_parts():
        app.include_router(part, responses=ERRORS)
    described = app.openapi()
    for schema in streamed_schemas():
        described["components"]["schemas"] |= schemas_of(schema)
    add_examples(described)
    add_security(described, list_parts())
    return described


def stream_event() -> type[BaseModel]:
    """Make the class of a response's event data. It takes long, and only the description of the API needs it."""
    from stint.domain.openai.response_events import ResponseEvent  # noqa: PLC0415

    class ResponseStreamEvent(RootModel[ResponseEvent]):
        """The data of an event."""

    return ResponseStreamEvent


def streamed_schemas() -> list[type[BaseModel]]:
    """Return the classes of the data of all streams' events."""
    from stint.domain.llama_stack.inference import (  # noqa: PLC0415 - as above
        ChatCompletionResponseStreamChunk,
        CompletionResponseStreamChunk,
    )
    from stint.http.routes.turns import StreamChunk  # noqa: PLC0415

    chat: list[type[BaseModel]] = [ChatCompletionResponseStreamChunk, CompletionResponseStreamChunk]
    return [StreamChunk, StreamError, stream_event(), ChatCompletionChunk, *chat]


def schemas_of(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schemas of a class and its parts as components."""
    described = schema.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), schema.__name__: described}


def add_security(described: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add the security scheme to a document, and to each operation the scope that it needs."""
    described["components"]["securitySchemes"] = SCHEMES
    described["security"] = [{"bearer": []}]
    for route in (each for router in routers for each in scoped_routes(router)):
        if isinstance(route, LazyRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = described["paths"][route.path_format][method.lower()]
                if route.rule.scope is None:
                    operation["security"] = []
                else:
                    operation["x-required-scope"] = route.rule.scope
