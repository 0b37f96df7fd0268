"""Requests with Idempotency-Key over HTTP. Those of turns and responses are in test_idempotent_runs.py."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.api.api_client import agent_config, open_session, post_silent
from tests.api.app_fixture import AppFixture, wait_until

from stint.domain.ids import new_id

CHAT = {"model": "recorded/x", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def key() -> dict[str, str]:
    return {"idempotency-key": new_id()}


@pytest.mark.parametrize("stream", [False, True])
def test_a_repeated_completion_gets_the_first_answer(
    http: httpx.Client, app_fixture: AppFixture, key: dict[str, str], stream: bool
) -> None:
    first = http.post("/v1/chat/completions", json=CHAT | {"stream": stream}, headers=key)
    again = http.post("/v1/chat/completions", json=CHAT | {"stream": stream}, headers=key)

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.content == first.content
    assert again.headers["content-type"] == first.headers["content-type"]
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert len(app_fixture.recorder.requests) == 1


def test_a_completion_that_failed_after_its_status_left_is_run_again(
    http: httpx.Client, app_fixture: AppFixture, key: dict[str, str]
) -> None:
    body = CHAT | {"model": "faulty/slow-failure"}

    answers = []
    for _ in range(2):
        app_fixture.faulty.silence.clear()
        answers.append(post_silent(http, app_fixture, "/v1/chat/completions", body, headers=key))

    assert [(each.status_code, each.json()["choices"]) for each in answers] == [(200, [])] * 2
    assert all("idempotent-replayed" not in each.headers for each in answers)


def test_without_a_key_or_with_another_one_a_request_runs_again(http: httpx.Client, app_fixture: AppFixture) -> None:
    for headers in ({}, {}, {"idempotency-key": new_id()}, {"idempotency-key": new_id()}):
        assert http.post("/v1/chat/completions", json=CHAT, headers=headers).status_code == 200

    assert len(app_fixture.recorder.requests) == 4


def test_the_same_key_at_another_route_is_another_request(http: httpx.Client, key: dict[str, str]) -> None:
    agent = http.post("/v1/agents", json={"agent_config": agent_config()}, headers=key).json()["agent_id"]
    body = {"session_name": "talk"}

    sessions = [http.post(f"/v1/agents/{agent}/session", json=body, headers=key).json() for _ in range(2)]

    assert sessions[0] == sessions[1]
    assert len(http.get(f"/v1/agents/{agent}/sessions").json()["data"]) == 1


def test_another_body_with_the_same_key_is_refused(
    http: httpx.Client, app_fixture: AppFixture, key: dict[str, str]
) -> None:
    http.post("/v1/chat/completions", json=CHAT, headers=key)

    refused = http.post("/v1/chat/completions", json=CHAT | {"temperature": 1}, headers=key)

    assert refused.status_code == 422
    assert refused.json()["error"]["code"] == "idempotency_key_reused"
    assert refused.headers["x-should-retry"] == "false"
    assert len(app_fixture.recorder.requests) == 1


@pytest.mark.parametrize("value", ["", "x" * 256, "caf\xe9", "a\tb"], ids=["empty", "long", "latin", "tab"])
def test_an_invalid_key_is_refused_before_anything_runs(
    http: httpx.Client, app_fixture: AppFixture, value: str
) -> None:
    refused = http.post("/v1/chat/completions", json=CHAT, headers=[(b"idempotency-key", value.encode("latin-1"))])

    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "idempotency-key"
    assert app_fixture.recorder.requests == []


def test_a_key_that_is_sent_twice_is_refused(http: httpx.Client) -> None:
    refused = http.post("/v1/chat/completions", json=CHAT, headers=[("idempotency-key", "a"), ("idempotency-key", "b")])

    assert refused.status_code == 400


def test_a_refused_request_is_not_remembered(http: httpx.Client, key: dict[str, str]) -> None:
    refused = http.post("/v1/agents", json={"agent_config": {}}, headers=key)
    accepted = http.post("/v1/agents", json={"agent_config": agent_config()}, headers=key)

    assert (refused.status_code, accepted.status_code) == (400, 200)


def test_a_request_that_failed_runs_again(http: httpx.Client, app_fixture: AppFixture, key: dict[str, str]) -> None:
    body = CHAT | {"model": "scripted/demo", "messages": [{"role": "user", "content": "fail: overloaded"}]}

    failed = [http.post("/v1/chat/completions", json=body, headers=key) for _ in range(2)]

    assert [each.status_code for each in failed] == [503, 503]
    assert all("idempotent-replayed" not in each.headers for each in failed)


@pytest.mark.parametrize("stream", [False, True])
def test_equal_requests_at_the_same_time_run_once(
    http: httpx.Client, app_fixture: AppFixture, key: dict[str, str], stream: bool
) -> None:
    body = CHAT | {"model": "faulty/gated", "stream": stream}

    def send(_: int) -> httpx.Response:
        return http.post("/v1/chat/completions", json=body, headers=key)

    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(send, number) for number in range(4)]
        wait_until(lambda: app_fixture.proxy.calls["GetItem"] > 3)
        app_fixture.faulty.silence.set()
        found = [answer.result() for answer in answers]

    assert {each.status_code for each in found} == {200}
    assert len({each.content for each in found}) == 1
    assert [each.headers.get("idempotent-replayed") for each in found].count("true") == 3


def test_a_slow_answer_is_kept_without_the_blanks_before_it(
    http: httpx.Client, app_fixture: AppFixture, key: dict[str, str]
) -> None:
    http.headers.update(key)
    body = CHAT | {"model": "faulty/slow"}

    first = post_silent(http, app_fixture, "/v1/chat/completions", body)
    again = http.post("/v1/chat/completions", json=body)

    assert first.text.startswith("  ")
    assert again.text == first.text.lstrip()


def test_a_repeated_upload_is_the_same_file_whatever_the_boundary_of_its_form(
    http: httpx.Client, key: dict[str, str]
) -> None:
    def upload(content: bytes) -> httpx.Response:
        files = {"file": ("notes.txt", content, "text/plain")}
        return http.post("/v1/files", files=files, data={"purpose": "assistants"}, headers=key)

    first, again, other = upload(b"Hello"), upload(b"Hello"), upload(b"Goodbye")

    assert first.request.headers["content-type"] != again.request.headers["content-type"]
    assert first.json() == again.json()
    assert other.status_code == 422
    assert len(http.get("/v1/files").json()["data"]) == 1


def test_a_key_costs_two_units_in_place_of_the_attempt_that_retries_find(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = open_session(http)
    agent = session.split("/")[3]
    units = []
    for headers in ({}, {"idempotency-key": new_id()}):
        app_fixture.proxy.forget()
        http.post(f"/v1/agents/{agent}/session", json={"session_name": "x"}, headers=headers)
        units.append(sum(n for call, n in app_fixture.proxy.units.items() if "Get" not in call and call != "Query"))

    assert units == [7, 8]
