"""A route is built at its first request, and is then as FastAPI builds it."""

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, APIRouter

from stint.http.deferred_imports import NO_TELEMETRY
from stint.http.requests import LazyRoute
from stint.http.scopes import requires


def make_router(route_class: type[APIRoute]) -> APIRouter:
    router = APIRouter(route_class=route_class, prefix="/things", tags=["Things"])

    @router.get("/{thing:path}", response_model=list[int])
    @requires(None)
    async def read(thing: str, limit: int = 3) -> list[object]:
        """Read numbers."""
        return [len(thing), limit]

    @router.post("/{thing}")
    @requires(None)
    async def write(thing: str) -> str:
        return thing

    return router


async def test_only_the_route_of_a_request_is_built_and_answers_as_usual() -> None:
    lazy, usual = FastAPI(telemetry=NO_TELEMETRY), FastAPI(telemetry=NO_TELEMETRY)
    lazy.router.routes.extend(make_router(LazyRoute).routes)
    usual.include_router(make_router(APIRoute))
    read, write = (each for each in lazy.router.routes if isinstance(each, LazyRoute))

    answers = []
    for app in (lazy, usual):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            found = [
                await client.get("/things/a/b"),
                await client.get("/things/x?limit=no"),
            ]
            answers.append([(each.status_code, each.json()) for each in found])

    assert answers[0] == answers[1]
    assert [status for status, _ in answers[0]] == [200, 422]
    assert "dependant" in vars(read)
    assert "dependant" not in vars(write)


def test_a_lazy_route_is_described_as_any_other() -> None:
    lazy, usual = FastAPI(telemetry=NO_TELEMETRY), FastAPI(telemetry=NO_TELEMETRY)
    lazy.include_router(make_router(LazyRoute))
    usual.include_router(make_router(APIRoute))

    assert lazy.openapi() == usual.openapi()


def test_an_attribute_that_no_route_has_is_an_error() -> None:
    [route, _] = make_router(LazyRoute).routes

    with pytest.raises(AttributeError, match="colour"):
        _ = route.colour  # type: ignore[attr-defined]
