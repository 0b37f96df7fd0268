"""Functions of routes that are called without FastAPI's search for their arguments."""

from collections.abc import Callable
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from stint.domain.errors import NotFound
from stint.domain.schema import Schema
from stint.http.deferred_imports import NO_TELEMETRY
from stint.http.direct_calls import direct_call_of
from stint.http.errors import add_error_handlers
from stint.http.requests import StrictRoute
from stint.http.routes.inspection import list_parts
from stint.http.scopes import requires

JSON = {"content-type": "application/json"}
BODIES = [
    b'{"name": "a", "numbers": [1, 2]}',
    b'{"name": "a", "unknown": 1}',
    b'{"name": 1, "numbers": ["b"]}',
    b'{"numbers": []}',
    b"{}",
    b"[]",
    b"null",
    b'"text"',
    b"",
    b" ",
    b"{",
    b'{"name": NaN}',
]


class Thing(Schema):
    name: str
    numbers: list[int] = []


async def agent_of(request: Request) -> str:
    if "absent" in request.headers:
        raise NotFound("Agent", "a")
    return request.headers.get("x-agent", "none")


Agent = Annotated[str, Depends(agent_of)]


def routes_of(declare: Callable[[APIRouter], None]) -> list[StrictRoute]:
    router = APIRouter(route_class=StrictRoute)
    declare(router)
    return [route for route in router.routes if isinstance(route, StrictRoute)]


def declare_both(router: APIRouter) -> None:
    """Declare a function that is called directly, and the same one with a parameter that only FastAPI fills in."""

    @router.post("/direct/{place}")
    @requires(None)
    async def direct(place: str, body: Thing, request: Request, agent: Agent) -> Response:
        return JSONResponse([place, body.model_dump(), request.method, agent])

    @router.post("/usual/{place}")
    @requires(None)
    async def usual(place: str, body: Thing, request: Request, agent: Agent, _limit: int = 1) -> Response:
        return JSONResponse([place, body.model_dump(), request.method, agent])


async def answers_to(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    app = FastAPI(telemetry=NO_TELEMETRY, strict_content_type=False)
    app.router.routes.extend(routes_of(declare_both))
    add_error_handlers(app)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        answer = await client.post(path, content=body, headers=JSON | headers)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("headers", [{}, {"x-agent": "a"}, {"absent": "1"}], ids=str)
@pytest.mark.parametrize("body", BODIES, ids=repr)
async def test_a_direct_call_answers_as_fastapi_does(body: bytes, headers: dict[str, str]) -> None:
    direct = await answers_to("/direct/a%20b", body, headers)

    assert direct == await answers_to("/usual/a%20b", body, headers)


async def test_a_direct_call_gets_the_path_the_body_the_request_and_its_dependencies() -> None:
    status, answer = await answers_to("/direct/a%20b", BODIES[0], {"x-agent": "c"})

    assert (status, answer) == (200, ["a b", {"name": "a", "numbers": [1, 2]}, "POST", "c"])


def test_a_function_that_needs_only_the_path_the_body_and_the_request_is_called_directly() -> None:
    direct, usual = routes_of(declare_both)

    assert direct_call_of(direct) is not None
    assert direct_call_of(usual) is None


async def dependent(agent: Agent) -> str:
    return agent


def plain(_request: Request) -> str:
    return ""


async def with_query(_body: Thing, _limit: Annotated[int, Query()] = 1) -> Response: ...  # type: ignore[empty-body]
async def with_number(_place: int, _body: Thing) -> Response: ...  # type: ignore[empty-body]
async def with_chain(_body: Thing, _agent: Annotated[str, Depends(dependent)]) -> Response: ...  # type: ignore[empty-body]
async def in_a_thread(_body: Thing, _agent: Annotated[str, Depends(plain)]) -> Response: ...  # type: ignore[empty-body]
async def with_optional_text(_body: Thing | str | None = None) -> Response: ...  # type: ignore[empty-body]
async def with_two_bodies(body: Thing, other: Thing) -> Response: ...  # type: ignore[empty-body]
async def with_a_document(_body: Thing) -> Thing: ...  # type: ignore[empty-body]
async def without_a_body() -> Response: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    "endpoint",
    [
        with_query,
        with_number,
        with_chain,
        in_a_thread,
        with_optional_text,
        with_two_bodies,
        with_a_document,
        without_a_body,
    ],
)
def test_fastapi_calls_functions_with_other_parameters_or_results(endpoint: Callable[..., Any]) -> None:
    path = "/{_place}" if endpoint is with_number else "/"

    [route] = routes_of(lambda router: router.add_api_route(path, requires(None)(endpoint), methods=["POST"]))

    assert direct_call_of(route) is None


def test_a_body_that_may_be_missing_is_read_directly() -> None:
    @requires(None)
    async def with_optional_body(_body: Thing | None = None) -> Response: ...  # type: ignore[empty-body]

    [route] = routes_of(lambda router: router.add_api_route("/", with_optional_body, methods=["POST"]))

    assert direct_call_of(route) is not None


@pytest.mark.parametrize("name", ["create_turn", "resume_turn", "create_response"])
def test_the_routes_of_runs_are_called_directly(name: str) -> None:
    [route] = [
        each for part in list_parts() for each in part.routes if isinstance(each, APIRoute) and each.name == name
    ]

    assert direct_call_of(route) is not None
