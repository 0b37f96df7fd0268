"""Routes that do not exist, at the function of October 2024, to which API Gateway sends paths without /v1."""

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from stint.http.app import create_app
from stint.http.middleware.paths import mapped_base_of
from stint.october_2024.routes.parts import list_october_parts
from stint.settings import read_settings


@pytest.fixture
def october() -> TestClient:
    make_services: Any = lambda _: SimpleNamespace()  # noqa: E731 - no request gets so far
    app = create_app(
        "october",
        *list_october_parts(),
        make_services=make_services,
        read_settings=lambda: read_settings({"STINT_AUTH": "none"}),
        buffered=False,
    )
    return TestClient(app, base_url="http://host/prod", root_path="/prod")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/models/gpt-5.6"),
        ("POST", "/inference/chat-completion"),
        ("POST", "/agents/x/session"),
        ("DELETE", "/shields/x"),
        ("GET", "/agents/x"),
    ],
)
def test_a_path_that_exists_below_v1_gets_the_advice_about_the_base_url(
    october: TestClient, method: str, path: str
) -> None:
    answer = october.request(method, path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "route_not_found")
    assert "that of OpenAI's clients ends in one /v1" in answer.json()["error"]["message"]


def test_a_path_that_exists_nowhere_gets_the_list(october: TestClient) -> None:
    message = october.get("/models/x/y/z/nope?a=1").json()["error"]["message"]
    other = october.get("/agents/x/nope").json()["error"]["message"]

    assert "base URL" in message  # GET /v1/models/{id}, whose id may contain slashes
    assert other.endswith("GET /v1/inspect/routes lists the routes.")


def test_another_method_gets_those_of_the_path(october: TestClient) -> None:
    answer = october.get("/agents/create")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("resource", "proxy", "path", "base"),
    [
        ("/{proxy+}", "openai/v1/responses", "/openai/v1/responses", ""),
        ("/{proxy+}", "openai/v1/responses", "/shop/openai/v1/responses", "/shop"),
        ("/{proxy+}", "v1/nope", "/shop/v1/nope", "/shop"),
        ("/{proxy+}", "v1/a%20b", "/shop/v1/a b", "/shop"),
        ("/{proxy+}", "nope", "/nope", ""),
        ("/v1/models/{proxy+}", "demo", "/openai/v1/models/demo", "/openai"),
        ("/v1/models", "", "/v1/models", ""),
        ("/", "", "/shop/", "/shop"),
    ],
)
def test_the_base_path_is_what_precedes_the_matched_path(resource: str, proxy: str, path: str, base: str) -> None:
    event = {"resource": resource, "pathParameters": {"proxy": proxy} if proxy else None}

    assert mapped_base_of({"type": "http", "path": path, "aws.event": event}) == base
