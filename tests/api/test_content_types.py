"""The content types of requests, and the headers of every answer."""

import json

import httpx
import pytest
from starlette.routing import Route
from tests.api.api_client import agent_config, assert_error, create_agent, open_session, say
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import respond

from stint.domain.ids import new_id
from stint.http.multipart import FormOrJSONRoute, FormRoute
from stint.http.routes.inspection import list_parts

KINDS = (None, "text/plain", "application/x-www-form-urlencoded")
FORM = "multipart/form-data; boundary=x"

ROUTES = sorted(
    (method, route.path, KINDS if isinstance(route, FormOrJSONRoute) else (*KINDS, FORM))
    for part in list_parts()
    for route in part.routes
    if isinstance(route, Route)
    if not isinstance(route, FormRoute)
    for method in (route.methods or set()) & {"POST", "PUT", "PATCH"}
)


@pytest.mark.parametrize(("method", "path", "kinds"), ROUTES, ids=[f"{method}-{path}" for method, path, _ in ROUTES])
def test_every_body_is_declared_to_be_json(
    http: httpx.Client, method: str, path: str, kinds: tuple[str | None, ...]
) -> None:
    body = json.dumps({"agent_config": agent_config(), "input": "Hello", "model": "scripted/demo"}).encode()
    address = path.replace("{", "").replace("}", "")

    for kind in kinds:
        headers = {} if kind is None else {"content-type": kind}
        error = assert_error(
            http.request(method, address, content=body, headers=headers), 415, "unsupported_media_type"
        )

        assert error["param"] == "content-type"
        assert kind is None or kind in error["message"]
        assert "content-type: application/json" in error["message"]


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/json;charset=UTF-8", 200),
        ("application/vnd.api+json", 200),
        ("application/jsonp", 415),
        ("text/json", 415),
        ("text/plain; application/json", 415),
        ("text/plain, application/json", 415),
        ("application/json, text/plain", 415),
    ],
)
def test_what_counts_as_json(http: httpx.Client, kind: str, status: int) -> None:
    body = json.dumps({"agent_config": agent_config()}).encode()

    assert http.post("/v1/agents", content=body, headers={"content-type": kind}).status_code == status


@pytest.mark.parametrize("kind", [None, "application/json", "text/plain"])
def test_a_request_without_a_body_needs_no_content_type(http: httpx.Client, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    created = respond(http, "Hello")

    conversation = http.post("/v1/conversations", headers=headers)
    cancelled = http.post(f"/v1/responses/{created['id']}/cancel", headers=headers)

    assert conversation.status_code == 200
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "completed")


def test_no_browser_guesses_the_type_of_an_answer_and_no_cache_keeps_it(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    agent = create_agent(http)
    session = open_session(http)
    body = {"model": "scripted/demo", "input": "Hello", "stream": True}
    answers = [
        http.get("/v1/models"),
        http.get(f"/v1/agents/{agent}"),
        http.delete(f"/v1/agents/{agent}"),
        http.get("/v1/nope"),
        http.put("/v1/agents"),
        http.get("/v1/models/"),
        http.post("/v1/agents", content=b"{"),
        say(http, session, "Hello"),
        say(http, session, "Hello", stream=True),
        http.post("/v1/responses", json=body),
        http.post("/v1/chat/completions", json=body | {"messages": [{"role": "user", "content": "Hello"}]}),
        http.get(f"/v1/responses/{new_id()}"),
    ]
    with app_fixture.proxy.fail("BatchGetItem", "NobodyExpectsThis"):
        answers.append(http.get(f"/v1/agents/{create_agent(http)}"))

    assert sorted({answer.status_code for answer in answers}) == [200, 307, 404, 405, 415, 500]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
