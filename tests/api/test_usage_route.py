"""Sums of usage over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session
from tests.api.app_fixture import AppFixture

RESPONSE = {"model": "scripted/demo", "input": "say: Hi"}
EMBEDDING = {"model": "hashed/words-384", "input": "Llamas hum."}


@pytest.fixture
def _summed(app_fixture: AppFixture) -> Iterator[None]:
    """Let the test's tenant sum its usage."""
    before = app_fixture.settings
    app_fixture.settings = before.model_copy(update={"usage_sums": True})
    app_fixture.made.pop(app_fixture.tenant, None)
    yield
    app_fixture.settings = before
    app_fixture.made.pop(app_fixture.tenant, None)


def read(http: httpx.Client, **params: Any) -> list[dict[str, Any]]:
    answer = http.get("/v1/usage", params=params)
    assert answer.status_code == 200, answer.text
    data: list[dict[str, Any]] = answer.json()["data"]
    return data


@pytest.mark.usefixtures("_summed")
def test_responses_turns_and_embeddings_are_summed(http: httpx.Client) -> None:
    session = open_session(http)
    http.post("/v1/responses", json=RESPONSE)
    http.post(f"{session}/turn", json={"messages": [{"role": "user", "content": "say: Hi"}]})
    http.post("/v1/embeddings", json=EMBEDDING)

    [total] = read(http)

    assert (total["runs"], total["model_calls"]) == (3, 3)
    assert total["input_tokens"] > 0
    assert total["dollars"] > 0


@pytest.mark.usefixtures("_summed")
def test_sums_are_grouped_and_filtered_by_session(http: httpx.Client) -> None:
    sessions = [open_session(http) for _ in range(2)]
    for session in sessions:
        http.post(f"{session}/turn", json={"messages": [{"role": "user", "content": "say: Hi"}]})
    ids = [session.rpartition("/")[2] for session in sessions]

    grouped = read(http, group_by=["session", "agent"])
    filtered = read(http, group_by="session", session_id=ids[0])

    assert sorted(each["session_id"] for each in grouped) == sorted(ids)
    assert all(each["agent_id"] for each in grouped)
    assert [(each["session_id"], each["runs"]) for each in filtered] == [(ids[0], 1)]


@pytest.mark.usefixtures("_summed")
def test_a_tenant_without_usage_has_no_sums(http: httpx.Client) -> None:
    assert read(http, start="2026-01-01", end="2026-01-31") == []


@pytest.mark.usefixtures("_summed")
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"start": "2026-01-01", "end": "2026-02-01"}, "1 to 31 days"),
        ({"start": "2026-01-02", "end": "2026-01-01"}, "1 to 31 days"),
        ({"start": "yesterday"}, "start"),
        ({"group_by": "provider"}, "group_by"),
    ],
)
def test_a_range_or_group_that_cannot_be_is_refused(http: httpx.Client, params: dict[str, str], words: str) -> None:
    refused = http.get("/v1/usage", params=params)

    assert (refused.status_code, words in refused.text) == (400, True)


def test_a_stack_without_sums_says_how_to_have_them(http: httpx.Client) -> None:
    refused = http.get("/v1/usage")

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "not_enabled")
    assert "STINT_USAGE_SUMS" in refused.text
