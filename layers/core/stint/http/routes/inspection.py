"""The description of the whole API: its routes and its OpenAPI document.

Each function has only its own routes, so the first request for all of them loads the routers of the other functions.
The document is built before (`make openapi`), because that takes seconds.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from stint.domain.llama_stack.registrations import ModelType
from stint.domain.llama_stack.registry import Route, RouteList
from stint.http.dependencies import AgentsServicesDep
from stint.http.json_responses import document
from stint.http.middleware.paths import OPENAI_PREFIX
from stint.http.requests import LazyRoute
from stint.http.routes import pages, registry, shields, tools
from stint.http.scopes import requires

BUILT_URL = "http://127.0.0.1:8321"
BUILT_MODEL = "openai/gpt-4.1-mini"
BUILT_EMBEDDING_MODEL = "openai/text-embedding-3-small"
BUILT_MODELS: dict[ModelType, str] = {"llm": BUILT_MODEL, "embedding": BUILT_EMBEDDING_MODEL}
"""The models of the built document by their types. It has these texts, and BUILT_URL, nowhere else."""

INDENTATION = re.compile(rb"\n *")
PLAIN = re.compile(r"[A-Za-z0-9._:/@+-]+")
"""Ids that mean themselves in JSON and in a command of a shell."""

IN_FOLDERS = tuple(f"stint.openai_agents.routes.{name}" for name in ("sessions", "vaults", "automations"))
"""Modules with routes of the API in folders of their own. By name, because these folders import this package."""

PROTOCOLS = ("mcp_server", "a2a", "ag_ui")
"""Folders of protocols, which a build may leave out."""

router = APIRouter(prefix="/v1", tags=["Registry"], route_class=LazyRoute)
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


@router.get("/inspect/routes", response_model=RouteList)
@requires("use")
async def list_routes() -> Response:
    """List the routes of the whole API."""
    return document(RouteList(data=list(routes_of_api())))


@router.get("/openapi.json", response_model=None)
@requires("use")
async def get_openapi(request: Request, services: AgentsServicesDep) -> Response:
    """Read the OpenAPI document of the whole API. Its examples name this server, and models that the caller may use."""
    url, models = pages.base_url_of(request, "/v1/openapi.json"), services.registry.list_example_models()
    described = describe_server(read_document(), url, models)
    return Response(described, media_type="application/json", headers=pages.KEPT | {"vary": "authorization"})


def read_document() -> bytes:
    """Return the built OpenAPI document without its indentation, half of its size. No text in JSON has line breaks."""
    return INDENTATION.sub(b"", (pages.STATIC / "openapi.json").read_bytes())


def describe_server(built: bytes, url: str, models: Mapping[ModelType, str]) -> bytes:
    """Return the built document with the URL of a server, as `base_url_of` returns it, and models of its own."""
    for model_type, name in BUILT_MODELS.items():
        own = models.get(model_type, name)
        if PLAIN.fullmatch(own):
            built = built.replace(name.encode(), own.encode())
    return built.replace(BUILT_URL.encode(), url.encode())


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
        webhooks,
    )

    return (
        *(import_module(name).router for name in IN_FOLDERS),  # before the paths of agents, which match theirs
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
        webhooks.router,
        router,
        pages.router,
        *(import_module(f"stint.{name}.routes").router for name in PROTOCOLS if find_spec(f"stint.{name}")),
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
