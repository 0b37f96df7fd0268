"""The principal of a request: where it comes from, and how long it lasts."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks
from fastapi.responses import StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from stint.caller import find_principal
from stint.domain.principals import Budgets, Principal
from stint.http.app import create_app
from stint.http.dependencies import MakeServices
from stint.http.requests import LazyRoute
from stint.http.scopes import requires
from stint.log_keys import log_keys
from stint.settings import read_settings

ACME = Principal("acme", "ann", frozenset({"use"}), key_id="k1", models=("openai/*",))
ZOO = Principal("zoo", "bob", frozenset({"use", "admin"}), budgets=Budgets(requests_per_minute=3))


class Api:
    """Routes that return their caller. `later` has the callers of work that a request leaves behind."""

    def __init__(self, auth: str = "authorizer") -> None:
        self.later: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.gate = asyncio.Event()
        router = APIRouter(route_class=LazyRoute)
        router.get("/v1/health")(self.health)
        router.get("/v1/version")(self.whoami)
        router.get("/v1/models")(self.stream)
        router.get("/v1/files")(self.leave_work)
        settings = read_settings({"STINT_AUTH": auth})
        none = cast("MakeServices", lambda _: None)
        self.app = create_app("tested", router, make_services=none, read_settings=lambda: settings, buffered=False)

    @requires(None)
    async def health(self) -> str:
        return caller()

    @requires("use")
    async def whoami(self) -> str:
        return caller()

    @requires("use")
    async def stream(self) -> StreamingResponse:
        async def body() -> AsyncIterator[str]:
            for _ in range(3):
                yield f"{caller()} "
                await self.gate.wait()
            yield await asyncio.to_thread(caller)

        return StreamingResponse(body())

    @requires("use")
    async def leave_work(self, background: BackgroundTasks) -> str:
        background.add_task(self.note)
        task = asyncio.create_task(self.note_later())
        self.tasks.add(task)
        return caller()

    async def note(self) -> None:
        self.later.append(caller())

    async def note_later(self) -> None:
        await self.gate.wait()
        self.later.append(caller())

    async def get(self, path: str, context: dict[str, Any] | None = None, **headers: str) -> httpx.Response:
        """Send a request whose event has this authorizer's context."""
        app = with_event(self.app, {"requestContext": {"authorizer": context} if context is not None else {}})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api") as client:
            return await client.get(path, headers=headers)


def caller() -> str:
    principal = find_principal()
    return f"{principal.tenant}/{principal.subject}" if principal else "nobody"


def with_event(app: ASGIApp, event: dict[str, Any]) -> ASGIApp:
    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "aws.event": event}, receive, send)

    return call


async def test_the_authorizers_context_is_the_caller() -> None:
    answer = await Api().get("/v1/version", {**ACME.to_context(), "principalId": "x", "integrationLatency": 3})

    assert (answer.status_code, answer.json()) == (200, "acme/ann")


@pytest.mark.parametrize(
    "changes",
    [
        None,
        dict.fromkeys(ACME.to_context()),
        {"tenant": ""},
        {"tenant": "Acme"},
        {"tenant": "acme\n"},
        {"tenant": "a#b"},
        {"tenant": 7},
        {"subject": ""},
        {"scopes": ["use"]},
        {"models": "not JSON"},
        {"models": "7"},
        {"models": "[1]"},
        {"budgets": '{"requests_per_minute": 0}'},
        {"budgets": '{"unlimited": true}'},
    ],
)
async def test_a_request_without_a_valid_principal_is_401(changes: dict[str, Any] | None) -> None:
    answer = await Api().get("/v1/version", None if changes is None else ACME.to_context() | changes)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["x-should-retry"] == "false"
    assert answer.json()["error"]["code"] == "unauthorized"
    assert answer.headers["x-request-id"]


async def test_no_header_makes_a_caller() -> None:
    names = ("authorizer", "x-authorizer", "x-stint-tenant", "x-amzn-request-context", "tenant", "x-tenant")
    headers = {name: json.dumps(ACME.to_context()) for name in names} | {"authorization": "Bearer stk_a_b"}

    assert (await Api().get("/v1/version", None, **headers)).status_code == 401


@pytest.mark.parametrize("path", ["/v1/version", "/v1/unknown", "/v1/health/more", "/v1/healthy", "/v1//health", "/"])
async def test_only_the_health_route_is_open(path: str) -> None:
    assert (await Api().get(path)).status_code == 401
    assert (await Api().get("/v1/health")).json() == "nobody"


async def test_a_stack_that_has_lost_the_setting_is_closed() -> None:
    assert read_settings({}).auth == read_settings({"STINT_AUTH": ""}).auth == "authorizer"


async def test_a_stack_without_authentication_has_one_tenant_whatever_the_context_says() -> None:
    api = Api("none")

    assert (await api.get("/v1/version")).json() == "default/anonymous"
    assert (await api.get("/v1/version", ZOO.to_context())).json() == "default/anonymous"


async def test_requests_of_two_tenants_at_the_same_time_keep_their_callers() -> None:
    api = Api()
    streams = [asyncio.create_task(api.get("/v1/models", each.to_context())) for each in (ACME, ZOO, ACME)]
    await asyncio.sleep(0)
    between = await api.get("/v1/version", ZOO.to_context())
    unknown = await api.get("/v1/version")
    api.gate.set()
    answers = [answer.text for answer in await asyncio.gather(*streams)]

    assert (between.json(), unknown.status_code) == ("zoo/bob", 401)
    assert answers == [" ".join([name] * 4) for name in ("acme/ann", "zoo/bob", "acme/ann")]


async def test_work_that_a_request_leaves_behind_keeps_its_caller() -> None:
    api = Api()

    await api.get("/v1/files", ACME.to_context())
    await api.get("/v1/files", ZOO.to_context())
    api.gate.set()
    await asyncio.gather(*api.tasks)

    assert api.later == ["acme/ann", "zoo/bob", "acme/ann", "zoo/bob"]


async def test_the_caller_is_forgotten_after_a_request() -> None:
    api, seen = Api(), []

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await api.app(scope, receive, send)
        seen.append(caller())

    api_after = with_event(call, {"requestContext": {"authorizer": ACME.to_context()}})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api_after), base_url="http://api") as client:
        assert (await client.get("/v1/version")).json() == "acme/ann"

    assert seen == ["nobody"]


async def test_log_lines_name_tenant_subject_and_key() -> None:
    api, keys = Api(), []

    async def note() -> str:
        keys.append(dict(log_keys()))
        return ""

    router = APIRouter(route_class=LazyRoute)
    router.get("/v1/version")(requires("use")(note))
    api.app.router.routes[:] = router.routes
    await api.get("/v1/version", ACME.to_context())
    await api.get("/v1/version", ZOO.to_context())

    assert [(each["tenant"], each["subject"], each.get("key_id")) for each in keys] == [
        ("acme", "ann", "k1"),
        ("zoo", "bob", None),
    ]
