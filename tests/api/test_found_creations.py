"""Retries of creations without an idempotency key: agents, sessions and conversations."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, create_agent, say
from tests.api.app_fixture import AppFixture
from tests.clock import CLOCK

Create = Callable[..., str]


def attempt(http: httpx.Client, path: str, body: Any, count: int, client: str = "Client/1") -> dict[str, Any]:
    headers = {"x-stainless-retry-count": str(count), "user-agent": client}
    response = http.post(path, json=body, headers=headers)
    assert response.status_code == 200, response.text
    created: dict[str, Any] = response.json()
    return created


@pytest.fixture(params=["agent", "session", "conversation"])
def create(http: httpx.Client, request: pytest.FixtureRequest) -> Create:
    """Return a function that creates an object with a retry count, and returns its id."""
    agent = create_agent(http)
    path, body, name = {
        "agent": ("/v1/agents", {"agent_config": agent_config(name="one")}, "agent_id"),
        "session": (f"/v1/agents/{agent}/session", {"session_name": "talk"}, "session_id"),
        "conversation": ("/v1/conversations", {"metadata": {"a": "b"}}, "id"),
    }[str(request.param)]
    return lambda count, **more: str(attempt(http, path, body, count, **more)[name])


def test_a_retry_of_a_creation_is_the_first_object(create: Create) -> None:
    assert len({create(count) for count in range(3)}) == 1


def test_equal_requests_that_are_no_retries_are_objects_of_their_own(create: Create) -> None:
    assert len({create(0) for _ in range(3)}) == 3


def test_each_object_answers_one_retry_per_count_newest_first(create: Create) -> None:
    first, second = create(0), create(0)

    retries = [create(1) for _ in range(3)]

    assert retries[:2] == [second, first]
    assert retries[2] not in (first, second)


def test_a_retry_of_another_client_or_after_ten_minutes_is_an_object_of_its_own(create: Create) -> None:
    first = create(0)
    other = create(1, client="Client/2")
    CLOCK.move(601)

    assert len({first, other, create(1)}) == 3


def test_a_retry_whose_first_attempt_never_arrived_is_found_by_the_next_one(create: Create) -> None:
    assert create(1) == create(2)


def test_a_deleted_object_is_not_found(http: httpx.Client) -> None:
    body = {"agent_config": agent_config()}
    first = attempt(http, "/v1/agents", body, 0)["agent_id"]
    http.delete(f"/v1/agents/{first}")

    assert attempt(http, "/v1/agents", body, 1)["agent_id"] != first


def test_a_session_with_a_turn_is_not_given_to_another_caller(http: httpx.Client) -> None:
    path = f"/v1/agents/{create_agent(http)}/session"
    first = attempt(http, path, {"session_name": "talk"}, 0)["session_id"]
    say(http, f"{path}/{first}", "say: hi")

    assert attempt(http, path, {"session_name": "talk"}, 1)["session_id"] != first


def test_a_refused_request_is_refused_again(http: httpx.Client) -> None:
    headers = {"x-stainless-retry-count": "1"}

    assert http.post("/v1/agents", json={"agent_config": {}}, headers=headers).status_code == 400
    assert http.post(f"/v1/agents/{'x' * 8}/session", json={"session_name": "a"}, headers=headers).status_code == 404


def test_an_attempt_costs_one_unit_and_a_retry_one(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"agent_config": agent_config()}
    settings = app_fixture.settings
    written = []
    for count, find_retries in ((0, False), (0, True), (1, True)):
        app_fixture.settings = settings.model_copy(update={"find_retries": find_retries})
        app_fixture.proxy.forget()
        attempt(http, "/v1/agents", body, count)
        units = app_fixture.proxy.units
        written.append(sum(units[call] for call in ("TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem")))
    app_fixture.settings = settings

    assert written == [4, 5, 1]
