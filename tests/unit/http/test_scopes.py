"""Every route, called by each kind of caller."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from infra.openapi.document import describe_api
from starlette.types import Receive, Scope, Send
from tests.route_rules import ROUTE_SCOPES, ROUTERS

from stint.domain.errors import InvalidRequest
from stint.domain.principals import SCOPES, Principal
from stint.domain.principals import Scope as CallerScope
from stint.http.app import create_app
from stint.http.requests import LazyRoute
from stint.http.scopes import OPEN_PATHS, requires
from stint.settings import read_settings

ROUTES = [(method, path) for method, _, path in (route.partition(" ") for route in ROUTE_SCOPES)]


class Walk:
    """The whole API without its services. `tenants` has those for which services were wanted."""

    def __init__(self, *routers: APIRouter) -> None:
        self.tenants: list[str] = []
        settings = read_settings({})
        self.app: FastAPI = create_app(
            "all",
            *(routers or ROUTERS),
            make_services=self.make_services,
            read_settings=lambda: settings,
            buffered=False,
        )

    def make_services(self, tenant: str) -> NoReturn:
        self.tenants.append(tenant)
        raise InvalidRequest("The route was reached.")

    async def call(
        self, context: dict[str, Any] | None, routes: Sequence[tuple[str, str]] = ROUTES, **headers: str
    ) -> dict[str, httpx.Response]:
        """Call routes with a context of the authorizer, and return the responses by route."""

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            event = {"requestContext": {} if context is None else {"authorizer": context}}
            await self.app({**scope, "aws.event": event}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
            return {
                f"{method} {path}": await client.request(
                    method, path.replace(":path", "").replace("{", "").replace("}", ""), json={}, headers=headers
                )
                for method, path in routes
            }


def principal(*scopes: CallerScope, tenant: str = "acme") -> dict[str, Any]:
    return dict(Principal(tenant, "ann", frozenset(scopes)).to_context())


def statuses(answers: dict[str, httpx.Response], *among: int) -> set[str]:
    return {route for route, answer in answers.items() if answer.status_code in among}


OPEN = {
    "GET /v1/health",
    "GET /health",
    "GET /.well-known/agent-card.json",
    "GET /.well-known/oauth-protected-resource",
    "GET /.well-known/oauth-protected-resource/v1/mcp",
    "GET /v1/mcp/.well-known/oauth-protected-resource",
}


def test_only_health_and_descriptions_of_the_server_are_open() -> None:
    assert len(ROUTES) > 100
    assert {route for route, scope in ROUTE_SCOPES.items() if scope is None} == OPEN
    assert {f"GET {path}" for path in OPEN_PATHS} == OPEN


@pytest.mark.parametrize("context", [None, {}, {"tenant": "acme"}, principal("use") | {"tenant": "ACME"}])
async def test_without_a_caller_every_route_but_health_is_401(context: dict[str, Any] | None) -> None:
    walk = Walk()

    answers = await walk.call(context)

    assert statuses(answers, 401) == {*ROUTE_SCOPES} - OPEN
    assert walk.tenants == []


@pytest.mark.parametrize("scope", SCOPES)
async def test_one_scope_opens_its_own_routes_only_and_the_error_names_the_missing_one(scope: CallerScope) -> None:
    walk = Walk()

    answers = await walk.call(principal(scope))

    assert statuses(answers, 401) == set()
    opened = {None, "any", scope} | ({"knowledge:write"} if scope == "registry:write" else set())
    assert statuses(answers, 403) == {route for route, needed in ROUTE_SCOPES.items() if needed not in opened}
    for route in statuses(answers, 403):
        error = answers[route].json()["error"] if not route.startswith("HEAD") else {"code": "insufficient_scope"}
        assert error["code"] == "insufficient_scope"
        needed = ROUTE_SCOPES[route]
        assert repr(needed) in error.get("message", repr(needed))
        challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
        assert answers[route].headers["www-authenticate"] == challenge
        assert answers[route].headers["x-should-retry"] == "false"


async def test_unknown_scopes_open_nothing() -> None:
    answers = await Walk().call(principal() | {"scopes": "everything Use use,admin registry"})

    assert statuses(answers, 403) == {*ROUTE_SCOPES} - OPEN


async def test_only_the_services_of_the_callers_tenant_are_wanted() -> None:
    walk, all_scopes = Walk(), SCOPES

    first = await walk.call(principal(*all_scopes))
    tenants, walk.tenants = set(walk.tenants), []
    await walk.call(principal(*all_scopes, tenant="zoo"))

    assert statuses(first, 401, 403) == set()
    assert tenants == {"acme"}
    assert set(walk.tenants) == {"zoo"}


async def test_two_tenants_at_the_same_time_each_want_their_own_services() -> None:
    walks = Walk()
    routes = [("GET", "/v1/agents"), ("GET", "/v1/responses"), ("GET", "/v1/files")]

    await asyncio.gather(*(walks.call(principal("use", tenant=f"t{number}"), routes) for number in range(20)))

    assert sorted(walks.tenants) == sorted(f"t{number}" for number in range(20) for _ in routes)


async def test_a_request_for_an_end_user_needs_the_scope_for_that() -> None:
    routes = [("POST", "/v1/responses"), ("GET", "/v1/agents")]
    refused = await Walk().call(principal("use"), routes, **{"X-Stint-User": "eve"})
    allowed = await Walk().call(principal("use", "users:act"), routes, **{"x-stint-user": "eve"})

    assert len(statuses(refused, 403)) == 2
    assert "'users:act'" in refused["GET /v1/agents"].json()["error"]["message"]
    assert statuses(allowed, 401, 403) == set()


async def test_unknown_paths_and_methods_have_no_scope() -> None:
    answers = await Walk().call(principal("use"), [("GET", "/v1/unknown"), ("PUT", "/v1/agents")])

    assert [answer.status_code for answer in answers.values()] == [404, 405]


def test_a_route_that_requires_no_scope_cannot_be_declared() -> None:
    router = APIRouter(route_class=LazyRoute)

    with pytest.raises(TypeError, match="requires no scope"):
        router.get("/v1/new")(lambda: "reached")
    with pytest.raises(TypeError, match="requires no scope"):  # too late: the route was declared before

        @requires("use")
        @router.get("/v1/new")
        async def read() -> str:
            return "reached"

    assert router.routes == []


def test_a_route_that_checks_no_scope_cannot_be_served() -> None:
    router = APIRouter()
    router.get("/v1/new")(requires("use")(lambda: "reached"))

    with pytest.raises(TypeError, match="does not check its scope"):
        Walk(router)


def operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in describe_api()["paths"].items():
        yield from ((f"{method.upper()} {path}", operation) for method, operation in methods.items())


def test_the_openapi_document_says_which_scope_each_operation_needs() -> None:
    described, table = describe_api(), {route.replace(":path", ""): scope for route, scope in ROUTE_SCOPES.items()}

    assert described["security"] == [{"bearer": []}]
    assert described["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for route, operation in operations():
        assert operation.get("x-required-scope") == table[route]
        assert ("security" in operation) == (table[route] is None)
