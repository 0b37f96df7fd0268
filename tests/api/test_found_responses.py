"""Retries of responses without an idempotency key: they find the response that their first attempt created."""

import threading
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, wait_until
from tests.clock import CLOCK

RESPONSE = {"model": "recorded/x", "input": "say: hi"}


def attempt(http: httpx.Client, count: int, agent: str = "Client/1", **body: Any) -> httpx.Response:
    headers = {"x-stainless-retry-count": str(count), "user-agent": agent}
    return http.post("/v1/responses", json=RESPONSE | body, headers=headers)


def id_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def listed(http: httpx.Client) -> list[str]:
    return [each["id"] for each in http.get("/v1/responses?order=asc&limit=100").json()["data"]]


def test_a_retry_of_a_response_is_that_response(http: httpx.Client, app_fixture: AppFixture) -> None:
    first, retry = [attempt(http, count) for count in range(2)]

    assert retry.json() == first.json()
    assert listed(http) == [id_of(first)]
    assert len(app_fixture.recorder.requests) == 1


def test_a_retry_of_a_stream_has_the_same_events(http: httpx.Client, app_fixture: AppFixture) -> None:
    first, retry = [attempt(http, count, stream=True) for count in range(2)]

    assert retry.headers["content-type"] == first.headers["content-type"]
    assert retry.text == first.text
    assert len(listed(http)) == len(app_fixture.recorder.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_follows_a_running_response(http: httpx.Client, app_fixture: AppFixture, stream: bool) -> None:
    answers: list[httpx.Response] = []

    def send(count: int) -> None:
        answers.append(attempt(http, count, model="faulty/gated", stream=stream))

    first, retry = [threading.Thread(target=send, args=(count,)) for count in range(2)]
    first.start()
    wait_until(lambda: len(listed(http)) == 1)
    app_fixture.proxy.forget()
    retry.start()
    wait_until(lambda: app_fixture.proxy.calls["PutItem"] > 0)  # the claim of the retry
    app_fixture.faulty.silence.set()
    first.join()
    retry.join()

    assert [each.status_code for each in answers] == [200, 200]
    assert all("awake" in answer.text for answer in answers)
    assert len(listed(http)) == 1


def test_a_retry_of_a_background_response_is_that_response(http: httpx.Client, app_fixture: AppFixture) -> None:
    first, retry = [attempt(http, count, background=True) for count in range(2)]

    assert id_of(first) == id_of(retry)
    assert len(app_fixture.queue.tasks) == 1


def test_equal_requests_that_are_no_retries_are_responses_of_their_own_in_order(http: httpx.Client) -> None:
    ids = [id_of(attempt(http, 0)) for _ in range(6)]

    assert listed(http) == ids


def test_each_of_equal_responses_answers_one_retry_per_count_newest_first(http: httpx.Client) -> None:
    first, second = id_of(attempt(http, 0)), id_of(attempt(http, 0))

    retries = [id_of(attempt(http, count)) for count in (1, 2, 1, 1)]

    assert retries[:3] == [second, second, first]
    assert retries[3] not in (first, second)


@pytest.mark.parametrize("other", [{"input": "say: ho"}, {"agent": "Client/2"}, {"stream": True}])
def test_a_retry_of_another_request_is_a_new_response(http: httpx.Client, other: dict[str, Any]) -> None:
    attempt(http, 0)

    attempt(http, 1, **other)

    assert len(listed(http)) == 2


def test_a_response_is_found_for_ten_minutes(http: httpx.Client) -> None:
    first = id_of(attempt(http, 0))
    CLOCK.move(590)
    found = id_of(attempt(http, 1))
    CLOCK.move(20)

    assert found == first != id_of(attempt(http, 2))


def test_a_deleted_response_is_not_found(http: httpx.Client) -> None:
    first = id_of(attempt(http, 0))
    http.delete(f"/v1/responses/{first}")

    assert id_of(attempt(http, 1)) != first


def test_a_retry_of_a_failed_response_gets_its_error(http: httpx.Client) -> None:
    body = {"model": "scripted/demo", "input": "fail: context"}
    first, retry = [attempt(http, count, **body) for count in range(2)]

    assert retry.status_code == first.status_code == 400
    assert retry.json()["error"]["code"] == first.json()["error"]["code"]
    assert len(listed(http)) == 1


def test_a_response_that_failed_before_a_step_is_run_again(http: httpx.Client) -> None:
    body = {"model": "scripted/demo", "input": "fail: overloaded"}
    answers = [attempt(http, count, **body) for count in range(2)]

    assert [each.status_code for each in answers] == [503, 503]
    assert len(listed(http)) == 2


def test_a_response_that_is_not_stored_is_not_found(http: httpx.Client) -> None:
    assert id_of(attempt(http, 0, store=False)) != id_of(attempt(http, 1, store=False))


def test_a_plain_response_costs_three_units_with_its_fingerprint_and_a_retry_costs_one(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    written = []
    for count in (0, 1):
        app_fixture.proxy.forget()
        attempt(http, count)
        units = app_fixture.proxy.units
        written.append(sum(units[call] for call in ("PutItem", "UpdateItem", "BatchWriteItem", "DeleteItem")))

    assert written == [3, 1]


def test_a_retry_finds_its_response_with_one_query_of_a_shard_and_one_of_the_response(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    for _ in range(20):
        attempt(http, 0)
    app_fixture.proxy.forget()

    attempt(http, 1)

    assert app_fixture.proxy.calls["Query"] == 3
    assert app_fixture.proxy.units["Query"] <= 4
