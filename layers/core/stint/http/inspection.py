"""The whole API, described: its routes and its OpenAPI document."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, RootModel

from stint.domain.chat_output import ChatCompletionChunk
from stint.domain.registry import LLAMA_STACK_VERSION, Route, RouteList
from stint.http import registry, shields, tools
from stint.http.documents import document
from stint.http.errors import ErrorResponse
from stint.http.middleware import ALIAS
from stint.http.sse import StreamChunk, StreamError

router = APIRouter(prefix="/v1", tags=["Registry"])
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "The request is at fault."},
    "5XX": {"model": ErrorResponse, "description": "The server, or a model's provider, is at fault."},
}
OPENAI = ("/v1/responses", "/v1/conversations", "/v1/chat/", "/v1/models")


@router.get("/inspect/routes", response_model=RouteList)
async def list_routes() -> Response:
    """List every route of the API, of whichever function."""
    return document(RouteList(data=list(routes_of_api())))


@router.get("/openapi.json", response_model=None)
async def get_openapi() -> Response:
    """Read the OpenAPI document of the whole API."""
    return JSONResponse(describe_api())


@cache
def list_parts() -> tuple[APIRouter, ...]:
    """List the routers of all functions; those of other functions are loaded when the API is described."""
    from stint.http import agents, chat, conversations, responses, turns  # noqa: PLC0415

    return (
        agents.router,
        turns.router,
        responses.router,
        conversations.router,
        chat.router,
        tools.router,
        shields.router,
        registry.router,
        router,
    )


def routes_of_api() -> Iterator[Route]:
    for part in list_parts():
        for route in part.routes:
            if isinstance(route, APIRoute):
                for path in addresses_of(route):
                    yield from (Route(route=path, method=method) for method in sorted(route.methods or ()))


def addresses_of(route: APIRoute) -> list[str]:
    """Give the paths of a route: those of the OpenAI API have two."""
    known = any(route.path.startswith(prefix) for prefix in OPENAI)
    return [route.path, route.path.replace("/v1/", ALIAS, 1)] if known else [route.path]


@cache
def describe_api() -> dict[str, Any]:
    """Make the OpenAPI document. Operations have the names of the functions that answer them."""
    app = FastAPI(
        title="Stint",
        version=LLAMA_STACK_VERSION,
        summary="Llama Stack's Agents API on AWS.",
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    for part in list_parts():
        app.include_router(part, responses=ERRORS)
    described = app.openapi()
    for schema in (StreamChunk, StreamError, stream_event(), ChatCompletionChunk):
        described["components"]["schemas"] |= schemas_of(schema)
    return described


def stream_event() -> type[BaseModel]:
    """Make the class of the data of a response's events: it takes long, so only who describes the API does."""
    from stint.domain.response_events import ResponseEvent  # noqa: PLC0415

    class ResponseStreamEvent(RootModel[ResponseEvent]):
        """The data of an event."""

    return ResponseStreamEvent


def schemas_of(schema: type[BaseModel]) -> dict[str, Any]:
    """Describe a class, and those it is made of, as components."""
    described = schema.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), schema.__name__: described}
