"""Routes whose module is imported with the first request for them."""

import sys
from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from starlette.routing import Match

from stint.apis.openai import OpenAIServices
from stint.http.app import create_app
from stint.http.requests import LazyRoute, LazyRouter
from stint.http.scopes import requires
from stint.settings import read_settings

MODULE = "stint.http.routes.inference"


@pytest.fixture(params=["", "/prod"], ids=["without a stage", "below a stage"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    eager = APIRouter(route_class=LazyRoute)
    eager.get("/v1/inference")(requires("use")(lambda: {"eager": True}))
    app = create_app(
        "tested",
        eager,
        LazyRouter(MODULE, "/v1/inference/"),
        make_services=lambda _: cast("OpenAIServices", SimpleNamespace(make_inference=lambda: None)),
        read_settings=lambda: read_settings({"STINT_AUTH": "none"}),
        buffered=False,
    )
    return TestClient(app, base_url=f"http://host{request.param}", root_path=request.param)


def test_the_module_is_imported_with_the_first_request_for_its_prefix(client: TestClient) -> None:
    assert client.get("/v1/inference").json() == {"eager": True}
    assert client.get("/v1/other/path").status_code == 404
    assert MODULE not in sys.modules

    refused = client.post("/v1/inference/chat-completion", json={})

    assert refused.status_code == 400
    assert MODULE in sys.modules


def test_unknown_paths_and_methods_are_the_errors_of_the_app(client: TestClient) -> None:
    missing, wrong = client.post("/v1/inference/nothing", json={}), client.get("/v1/inference/completion")

    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "route_not_found")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/agents/a1/mcp", True),
        ("/v1/agents/a1/mcp/.well-known/x", True),
        ("/v1/agents/a%2Fb/mcp", True),
        ("/v1/agents/a1/mcp2", False),
        ("/v1/agents/a1/session/mcp", False),
        ("/v1/agents/mcp", False),
        ("/v2/agents/a1/mcp", False),
        ("/v1/mcp", True),
    ],
)
def test_a_name_in_braces_is_one_part_of_a_path(path: str, found: bool) -> None:
    router = LazyRouter(MODULE, "/v1/mcp", "/v1/agents/{agent_id}/mcp")

    for stage in ("", "/prod"):
        match, _ = router.matches({"type": "http", "path": stage + path, "root_path": stage})
        assert match is (Match.FULL if found else Match.NONE)
