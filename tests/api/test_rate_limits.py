"""Budgets over HTTP: statuses, headers, and what the unmodified clients do."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.clock import CLOCK

BUDGETS = {"requests_per_minute": 3, "tokens_per_minute": 10_000, "dollars_per_month": 5}
LIMITS = ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-limit-tokens")
RESPONSE = {"model": "scripted/demo", "input": "say: Hi"}
CHAT = {"model": "scripted/demo", "messages": [{"role": "user", "content": "say: Hi"}]}


@pytest.fixture
def limit(app_fixture: AppFixture) -> Iterator[Any]:
    """Limit the test's tenant, and stop the clock at the start of a minute."""
    before = app_fixture.settings

    def set_limits(**budgets: float) -> None:
        tenants = json.dumps({app_fixture.tenant: {"budgets": budgets}})
        app_fixture.settings = before.model_copy(update={"tenants": tenants})
        app_fixture.made.pop(app_fixture.tenant, None)

    with CLOCK.stop():
        yield set_limits
    app_fixture.settings = before


EMBEDDING = {"model": "hashed/words-384", "input": "Llamas hum. " * 200}
CONTENTS = {"model_id": "hashed/words-384", "contents": ["Llamas hum. " * 200]}
EMBEDDINGS = [
    ("/v1/embeddings", EMBEDDING),
    ("/v1/openai/v1/embeddings", EMBEDDING),
    ("/v1/inference/embeddings", CONTENTS),
]


@pytest.mark.parametrize(("path", "body"), EMBEDDINGS)
def test_embeddings_are_limited_by_their_tokens(
    http: httpx.Client, limit: Any, path: str, body: dict[str, Any]
) -> None:
    limit(tokens_per_minute=400)

    first, second = (http.post(path, json=body) for _ in range(2))

    assert (first.status_code, first.headers["x-ratelimit-remaining-tokens"]) == (200, "0")
    assert (second.status_code, second.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(second.headers["retry-after"]) <= 60


@pytest.mark.parametrize(("path", "body"), EMBEDDINGS)
def test_embeddings_are_refused_when_the_month_is_spent(
    http: httpx.Client, limit: Any, path: str, body: dict[str, Any]
) -> None:
    limit(dollars_per_month=0.0000001)

    answers = [http.post(path, json=body) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 402]
    assert answers[1].json()["error"]["code"] == "insufficient_quota"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), [("/v1/responses", RESPONSE), ("/v1/chat/completions", CHAT)])
def test_responses_have_the_headers_of_rate_limits(
    http: httpx.Client, limit: Any, path: str, body: dict[str, Any], stream: bool
) -> None:
    limit(**BUDGETS)

    answer = http.post(path, json=body | {"stream": stream})

    assert answer.status_code == 200
    assert [answer.headers[name] for name in LIMITS] == ["3", "2", "10000"]
    assert 0 < int(answer.headers["x-ratelimit-remaining-tokens"]) < 10_000
    assert answer.headers["x-ratelimit-reset-requests"].endswith("s")


def test_a_request_over_the_limit_is_a_429_that_names_the_wait(http: httpx.Client, limit: Any) -> None:
    limit(requests_per_minute=1)
    session = open_session(http)
    assert http.post(f"{session}/turn", json={"messages": [{"role": "user", "content": "say: a"}]}).status_code == 200

    refused = http.post(f"{session}/turn", json={"messages": [{"role": "user", "content": "say: b"}]})

    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert "x-should-retry" not in refused.headers
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert len(http.get(session).json()["turns"]) == 1


def test_a_fork_counts_as_a_request(http: httpx.Client, limit: Any) -> None:
    limit(requests_per_minute=2)
    session = open_session(http)
    body = {"messages": [{"role": "user", "content": "say: a"}]}
    turn_id = http.post(f"{session}/turn", json=body).json()["turn_id"]
    sessions, _, session_id = session.rpartition("/")
    source = {"session_id": session_id, "turn_id": turn_id}

    forks = [http.post(sessions, json={"session_name": "fork", "fork_from": source}) for _ in range(2)]

    assert [each.status_code for each in forks] == [200, 429]
    assert http.post(sessions, json={"session_name": "no fork"}).status_code == 200


def test_files_that_are_added_at_once_count_as_requests(http: httpx.Client, limit: Any) -> None:
    limit(requests_per_minute=6)
    store = http.post("/v1/vector_stores", json={}).json()["id"]
    batches = f"/v1/vector_stores/{store}/file_batches"

    def add(count: int) -> httpx.Response:
        return http.post(batches, json={"file_ids": [f"file-{number}" for number in range(count)]})

    assert add(4).status_code == 404  # it was admitted: 1 of 6 is left
    assert add(2).status_code == 429
    assert http.post("/v1/vector_stores", json={"file_ids": ["file-1", "file-2"]}).status_code == 429
    assert add(1).status_code == 404
    large = add(7)
    assert (large.status_code, large.json()["error"]["code"]) == (400, "batch_too_large")
    assert "Send at most 6" in large.json()["error"]["message"]


def test_a_spent_month_is_a_402_that_is_not_retried(http: httpx.Client, limit: Any) -> None:
    limit(dollars_per_month=0.0000001)
    first = [http.post("/v1/responses", json=RESPONSE).status_code for _ in range(2)]

    refused = http.post("/v1/responses", json=RESPONSE)

    assert (first[0], refused.status_code, refused.json()["error"]["code"]) == (200, 402, "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"


def test_without_budgets_there_are_no_such_headers(http: httpx.Client) -> None:
    answer = http.post("/v1/responses", json=RESPONSE)

    assert [name for name in answer.headers if name.startswith("x-ratelimit")] == []


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the client's waits move the clock, and return them."""
    waits: list[float] = []
    sleep, client = time.sleep, threading.current_thread()

    def wait(seconds: float) -> None:
        if threading.current_thread() is not client:
            return sleep(seconds)
        waits.append(seconds)
        CLOCK.move(seconds)
        return None

    monkeypatch.setattr(time, "sleep", wait)
    return waits


def test_openais_client_waits_for_the_next_minute(server: Served, limit: Any, slept: list[float]) -> None:
    limit(requests_per_minute=1)
    with openai_client(server) as client:
        retrying = client.with_options(max_retries=1)
        for _ in range(2):
            assert retrying.responses.create(model="scripted/demo", input="say: Hi").output_text == "Hi"

    assert len(slept) == 1
    assert 1 <= slept[0] <= 60


def test_llama_stacks_client_waits_for_the_next_minute(server: Served, limit: Any, slept: list[float]) -> None:
    limit(requests_per_minute=1)
    messages: Any = [{"role": "user", "content": "say: Hi"}]
    with LlamaStackClient(base_url=server.url, max_retries=1) as client:
        for _ in range(2):
            answer: Any = client.inference.chat_completion(model_id="scripted/demo", messages=messages)
            assert answer.completion_message.content == "Hi"

    assert len(slept) == 1
    assert 1 <= slept[0] <= 60
