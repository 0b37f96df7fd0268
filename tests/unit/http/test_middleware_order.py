"""The order of the middleware, as a client sees it. Each test states which of two middleware sees a request first."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from stint.caller import find_end_user
from stint.domain.principals import Principal
from stint.http.app import create_app
from stint.http.dependencies import MakeServices
from stint.http.middleware.bodies import MAX_BUFFERED_BYTES
from stint.http.requests import LazyRoute
from stint.http.scopes import requires
from stint.http.sse import DONE
from stint.metering import Meter, Spending, set_meter
from stint.settings import read_settings

ANN = Principal("acme", "ann", frozenset({"use", "users:act"})).to_context()
ORIGIN = "https://app.example"
MAX_BODY = 1000
TOO_LARGE = b"x" * (MAX_BODY + 1)
BAD_USER = {"x-stint-user": ""}
EVENT = b'data: {"text": "Hello"}\n\n'


class FakeSpending:
    def to_headers(self) -> dict[str, str]:
        return {"x-ratelimit-remaining-requests": "7"}


async def describe(request: Request) -> dict[str, Any]:
    """Return what the middleware has found out about the request."""
    set_meter(Meter(spending=cast("Spending", FakeSpending())))
    return {
        "path": request.scope["path"],
        "base": request.scope["root_path"],
        "llama_stack": bool(request.scope.get("stint.llama_stack")),
        "user": find_end_user(),
    }


async def fail() -> None:
    set_meter(Meter(spending=cast("Spending", FakeSpending())))
    raise ZeroDivisionError


async def write_much() -> str:
    set_meter(Meter(spending=cast("Spending", FakeSpending())))
    return "x" * MAX_BUFFERED_BYTES


async def fail_late() -> StreamingResponse:
    async def body() -> AsyncIterator[bytes]:
        yield EVENT
        raise ZeroDivisionError

    return StreamingResponse(body(), media_type="text/event-stream")


async def stream() -> StreamingResponse:
    async def body() -> AsyncIterator[bytes]:
        yield EVENT
        yield DONE

    return StreamingResponse(body(), media_type="text/event-stream")


class OrderedApi:
    """An app with a few routes. `lines` has its log lines."""

    def __init__(self, lines: io.StringIO, *, buffered: bool) -> None:
        self.lines, self.buffered = lines, buffered
        self.read = 0
        router = APIRouter(route_class=LazyRoute)
        router.get("/v1/health")(requires(None)(describe))
        router.get("/v1/models")(requires("use")(describe))
        router.get("/v1/much")(requires("use")(write_much))
        router.get("/v1/late")(requires("use")(fail_late))
        router.get("/v1/stream")(requires("use")(stream))
        router.post("/v1/tool-runtime/invoke")(requires("use")(fail))
        variables = {"STINT_CORS_ORIGIN": ORIGIN, "STINT_MAX_REQUEST_BYTES": str(MAX_BODY)}
        settings = read_settings(variables)
        none = cast("MakeServices", lambda _: None)
        self.app = create_app("tested", router, make_services=none, read_settings=lambda: settings, buffered=buffered)

    async def call(
        self,
        path: str,
        method: str = "GET",
        *,
        caller: dict[str, Any] | None = ANN,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        resource: str = "",
        root_path: str = "",
    ) -> httpx.Response:
        """Send a request as API Gateway does. The runtime of streams finds `root_path`, Mangum does not."""
        self.read = 0

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            async def count() -> Any:
                self.read += 1
                return await receive()

            context = {"requestContext": {} if caller is None else {"authorizer": caller}}
            await self.app({**scope, "aws.event": context | {"resource": resource}}, count, send)

        transport = httpx.ASGITransport(app, raise_app_exceptions=False, root_path=root_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
            return await client.request(method, path, content=body, headers=headers)

    async def call_below(self, base: str, path: str, **options: Any) -> httpx.Response:
        """Send a request below the base path of a custom domain."""
        return await self.call(base + path, root_path="" if self.buffered else base, **options)


@pytest.fixture(params=[False, True], ids=["streaming", "buffered"])
def api(request: pytest.FixtureRequest, written: io.StringIO) -> OrderedApi:
    return OrderedApi(written, buffered=request.param)


@pytest.fixture
def buffered(written: io.StringIO) -> OrderedApi:
    return OrderedApi(written, buffered=True)


@pytest.fixture
def streaming(written: io.StringIO) -> OrderedApi:
    return OrderedApi(written, buffered=False)


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def assert_common(response: httpx.Response, lines: io.StringIO) -> None:
    """Assert that a response has the headers of every response, and that its log line has its status."""
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert response.headers["vary"] == "origin"
    assert len(response.headers["x-trace-id"]) == 32
    assert response.headers["x-request-id"]
    written = map(json.loads, lines.getvalue().splitlines())
    assert [line["status"] for line in written if line["message"] == "Request"] == [response.status_code]


@pytest.mark.parametrize(
    ("status", "path", "options"),
    [
        (200, "/v1/models", {}),
        (200, "/v1/health", {"caller": None}),
        (307, "/v1/models/", {}),
        (400, "/v1/models", {"headers": BAD_USER}),
        (401, "/v1/models", {"caller": None}),
        (404, "/v1/nothing", {}),
        (405, "/v1/models", {"method": "PUT"}),
        (413, "/v1/models", {"body": TOO_LARGE}),
        (500, "/v1/tool-runtime/invoke", {"method": "POST"}),
    ],
)
async def test_every_response_has_a_log_line_and_headers(
    api: OrderedApi, status: int, path: str, options: dict[str, Any]
) -> None:
    response = await api.call(path, **options)

    assert response.status_code == status
    assert_common(response, api.lines)


async def test_a_redirect_needs_no_caller_and_reads_no_body(api: OrderedApi) -> None:
    response = await api.call("/v1/models/?limit=1", "POST", caller=None, body=TOO_LARGE, headers=BAD_USER)

    assert (response.status_code, response.headers["location"]) == (307, "../models?limit=1")
    assert api.read == 0


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/openai/v1/models/"])
async def test_a_redirect_keeps_the_base_path_and_the_prefix(api: OrderedApi, path: str) -> None:
    response = await api.call_below("/shop", path)

    assert (response.status_code, response.headers["location"]) == (307, "../models")


async def test_a_base_path_with_a_slash_is_redirected(buffered: OrderedApi) -> None:
    """The slash is removed before the base path is found, of which `/` would remain."""
    redirected = await buffered.call("/shop/", resource="/")
    followed = await buffered.call("/shop", resource="/")

    assert (redirected.status_code, redirected.headers["location"]) == (307, "../shop")
    assert code_of(followed) == (404, "route_not_found")
    assert "GET /shop/ does not exist" in followed.json()["error"]["message"]


async def test_the_caller_is_checked_before_the_end_user_and_the_body(api: OrderedApi) -> None:
    response = await api.call("/v1/nothing", "POST", caller=None, body=TOO_LARGE, headers=BAD_USER)

    assert code_of(response) == (401, "unauthorized")
    assert api.read == 0


async def test_the_end_user_is_checked_before_the_body(api: OrderedApi) -> None:
    response = await api.call("/v1/nothing", "POST", body=TOO_LARGE, headers=BAD_USER)

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "x-stint-user"
    assert api.read == 0


async def test_the_end_user_of_an_open_route_is_checked(api: OrderedApi) -> None:
    response = await api.call("/v1/health", caller=None, headers=BAD_USER)

    assert response.status_code == 400


async def test_the_body_is_measured_before_a_route_is_found(api: OrderedApi) -> None:
    response = await api.call("/v1/nothing", "POST", body=TOO_LARGE)

    assert code_of(response) == (413, "too_large")


async def test_the_base_path_is_found_before_the_caller(api: OrderedApi) -> None:
    response = await api.call_below("/shop", "/v1/health", caller=None)

    assert (response.status_code, response.json()["base"]) == (200, "/shop")


async def test_only_buffered_groups_find_the_base_path_themselves(streaming: OrderedApi) -> None:
    response = await streaming.call("/shop/v1/models")

    assert code_of(response) == (404, "route_not_found")


async def test_an_open_path_is_not_open_below_the_prefix(api: OrderedApi) -> None:
    """The caller is checked by the path that was sent, without the mapping of OpenAI's prefix."""
    refused = await api.call_below("/shop", "/v1/openai/v1/health", caller=None)
    allowed = await api.call_below("/shop", "/v1/openai/v1/health")

    assert code_of(refused) == (401, "unauthorized")
    assert allowed.status_code == 200


async def test_the_base_path_is_found_before_the_prefix(api: OrderedApi) -> None:
    response = await api.call_below("/shop", "/v1/openai/v1/models", headers={"x-stint-user": "eve"})

    assert response.json() == {"path": "/shop/v1/models", "base": "/shop", "llama_stack": True, "user": "eve"}


async def test_an_error_names_the_path_that_was_sent(api: OrderedApi) -> None:
    response = await api.call_below("/shop", "/v1/openai/v1/nothing")

    assert "GET /shop/v1/openai/v1/nothing does not exist" in response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/tool-runtime/invoke", "/v1/openai/v1/tool-runtime/invoke"])
async def test_a_fault_of_a_tool_has_the_headers_of_errors(api: OrderedApi, path: str) -> None:
    response = await api.call_below("/shop", path, method="POST")

    assert code_of(response) == (500, "server_error")
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["x-ratelimit-remaining-requests"] == "7"


@pytest.mark.parametrize(("path", "method"), [("/v1/tool-runtime/invoke/", "POST"), ("/v1/models", "GET")])
async def test_only_a_failed_tool_stops_retries(api: OrderedApi, path: str, method: str) -> None:
    response = await api.call(path, method)

    assert "x-should-retry" not in response.headers


async def test_the_rate_limits_are_those_after_the_request(api: OrderedApi) -> None:
    admitted, refused = await api.call("/v1/models"), await api.call("/v1/models", caller=None)

    assert admitted.headers["x-ratelimit-remaining-requests"] == "7"
    assert "x-ratelimit-remaining-requests" not in refused.headers


async def test_the_refusal_of_a_large_response_has_all_headers(buffered: OrderedApi) -> None:
    response = await buffered.call("/v1/much")

    assert code_of(response) == (413, "too_large")
    assert response.headers["x-ratelimit-remaining-requests"] == "7"
    assert_common(response, buffered.lines)


async def test_a_streaming_group_has_no_limit_of_responses(streaming: OrderedApi) -> None:
    response = await streaming.call("/v1/much")

    assert (response.status_code, len(response.content)) == (200, MAX_BUFFERED_BYTES + 2)


async def test_a_fault_after_the_first_byte_cuts_a_stream(streaming: OrderedApi) -> None:
    response = await streaming.call("/v1/late")

    assert (response.status_code, response.content) == (200, EVENT)
    assert_common(response, streaming.lines)


async def test_a_buffered_response_is_held_until_it_cannot_fail(buffered: OrderedApi) -> None:
    response = await buffered.call("/v1/late")

    assert code_of(response) == (500, "server_error")
    assert_common(response, buffered.lines)


async def test_the_end_marker_is_removed_for_llama_stacks_clients(api: OrderedApi) -> None:
    marked = await api.call("/v1/stream")
    unmarked = await api.call("/v1/stream", headers={"x-llamastack-client-version": "0.2.12"})

    assert (marked.content, unmarked.content) == (EVENT + DONE, EVENT)
