import concurrent.futures
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.system.conftest import Api

ANYTHING = ["*/*"]


@pytest.fixture
def asked(api: Api) -> Path:
    """Return the file with the authorizer's events, which is empty at first."""
    path = api.marks / "authorizations"
    path.write_text("")
    return path


def events(asked: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in asked.read_text().splitlines()]


def get(api: Api, path: str, answer: dict[str, Any]) -> httpx.Response:
    return api.client.get(path, headers={"authorization": json.dumps(answer)})


def test_the_authorizer_gets_the_request_without_its_body(api: Api, asked: Path) -> None:
    headers = {"authorization": json.dumps({"paths": ANYTHING, "test": "event"})}

    assert api.client.post("/test/guarded/a%20b?x=1", content="body", headers=headers).status_code == 200

    (event,) = events(asked)
    assert event["type"] == "REQUEST"
    assert event["methodArn"] == "arn:aws:execute-api:us-east-1:000000000000:local/test/POST/guarded/a%20b"
    assert event["resource"] == "/guarded/{name}"
    assert event["pathParameters"] == {"name": "a%20b"}
    assert event["queryStringParameters"] == {"x": "1"}
    assert event["stageVariables"] == {}
    assert event["requestContext"]["identity"]["sourceIp"] == "127.0.0.1"
    assert "body" not in event


def test_the_function_gets_the_principal_and_the_context_as_strings(api: Api) -> None:
    context = {"text": "a", "number": 1.5, "whole": 2, "truth": True}

    authorizer = get(api, "/guarded/a", {"paths": ANYTHING, "context": context}).json()["requestContext"]["authorizer"]

    assert isinstance(authorizer.pop("integrationLatency"), int)
    assert authorizer == {"principalId": "someone", "text": "a", "number": "1.5", "whole": "2", "truth": "true"}


def test_an_open_route_has_no_authorizer_in_its_context(api: Api, asked: Path) -> None:
    event = get(api, "/echo/a", {"paths": []}).json()

    assert "authorizer" not in event["requestContext"]
    assert events(asked) == []


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}])
def test_a_request_without_identity_is_401_and_asks_nobody(api: Api, asked: Path, headers: dict[str, str]) -> None:
    response = api.client.get("/guarded/a", headers=headers)

    assert response.status_code == 401
    assert response.json() == {"unauthorized": "Unauthorized"}
    assert response.headers["www-authenticate"] == "Bearer"
    assert events(asked) == []


def test_a_preflight_needs_no_identity(api: Api) -> None:
    assert api.client.options("/guarded/a").status_code == 200


def test_an_authorizer_that_raises_unauthorized_makes_a_401_which_is_not_cached(api: Api, asked: Path) -> None:
    statuses = [get(api, "/guarded/a", {"raise": "Unauthorized"}).status_code for _ in range(2)]

    assert statuses == [401, 401]
    assert len(events(asked)) == 2


def test_a_denied_method_is_403(api: Api) -> None:
    response = get(api, "/guarded/a", {"paths": ANYTHING, "effect": "Deny"})

    assert response.status_code == 403
    assert response.json() == {"message": "User is not authorized to access this resource with an explicit deny"}


def test_one_policy_is_evaluated_for_each_method_until_the_cache_ends(api: Api, asked: Path) -> None:
    answer = {"paths": ["GET/guarded/a"], "test": "one policy"}

    assert get(api, "/guarded/a", answer).status_code == 200
    assert get(api, "/guarded/b", answer).status_code == 403
    assert len(events(asked)) == 1


def test_requests_side_by_side_share_one_invocation_of_the_authorizer(api: Api, asked: Path) -> None:
    answer = {"paths": ANYTHING, "test": "side by side"}

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        statuses = list(pool.map(lambda _: get(api, "/guarded/a", answer).status_code, range(2)))

    assert statuses == [200, 200]
    assert len(events(asked)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        {"raise": "the table is unreachable"},
        {"result": None},
        {"result": {"principalId": "someone"}},
        {"paths": ANYTHING, "context": {"scopes": ["use"]}},
        {"paths": ANYTHING, "effect": "Perhaps"},
    ],
)
def test_an_authorizer_that_fails_or_returns_something_else_is_500(api: Api, answer: dict[str, Any]) -> None:
    response = get(api, "/guarded/a", answer)

    assert response.status_code == 500
    assert response.json() == {"why": None}
    assert response.headers["x-from"] == "gateway"
