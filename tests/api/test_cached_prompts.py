"""Checkpoints in requests to Bedrock, and cached tokens in the usage and the receipts of each API."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turn
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer

MODEL = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"
CACHED: dict[str, Any] = {
    "cacheReadInputTokens": 100,
    "cacheWriteInputTokens": 20,
    "cacheDetails": [{"ttl": "1h", "inputTokens": 20}],
}
POINT, HOUR = {"type": "default"}, {"type": "default", "ttl": "1h"}


def points_in(bedrock: ConverseStreamServer) -> list[Any]:
    """Return the checkpoints of the last request."""
    body = bedrock.bodies[-1]
    blocks = [*body.get("system", []), *(block for each in body["messages"] for block in each["content"])]
    return [block["cachePoint"] for block in blocks if "cachePoint" in block]


def answer(bedrock: ConverseStreamServer) -> None:
    bedrock.script(converse.stream(*converse.text_block("Hi"), **CACHED))


def test_a_turn_is_cached_and_its_receipt_says_what_was_written(
    http: httpx.Client, bedrock: ConverseStreamServer
) -> None:
    session = open_session(http, model=MODEL, instructions="Be kind.")
    answer(bedrock)

    receipt = turn(http, session, "Hello")["receipt"]

    assert points_in(bedrock) == [POINT, POINT]
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    assert [receipt[name] for name in names] == [125, 100, 20, 20]


@pytest.mark.parametrize(
    ("fields", "points"),
    [
        ({}, [POINT]),
        ({"store": False}, []),
        ({"store": False, "prompt_cache_options": {"ttl": "30m"}}, [HOUR]),
        ({"prompt_cache_retention": "24h"}, [HOUR]),
        ({"prompt_cache_options": {"mode": "explicit"}}, []),
    ],
)
def test_a_response_is_cached_as_it_asks_and_its_usage_says_so(
    http: httpx.Client, bedrock: ConverseStreamServer, fields: dict[str, Any], points: list[Any]
) -> None:
    answer(bedrock)

    response = http.post("/v1/responses", json={"model": MODEL, "input": "Hello"} | fields).json()

    assert points_in(bedrock) == points
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 100, "cache_write_tokens": 20}
    asked = fields.get("prompt_cache_options")
    shown = {"mode": "implicit", "ttl": "30m"} | asked if asked is not None else None
    assert response.get("prompt_cache_options") == shown


@pytest.mark.parametrize(
    ("fields", "points"),
    [
        ({}, []),
        ({"prompt_cache_options": {"ttl": "5m"}}, [POINT]),
        ({"prompt_cache_retention": "24h"}, [HOUR]),
        ({"previous_response_id": True}, [POINT]),
        ({"previous_response_id": True, "prompt_cache_options": {"mode": "explicit"}}, []),
    ],
)
def test_a_compaction_is_cached_as_it_asks_and_if_it_continues_a_chain(
    http: httpx.Client, bedrock: ConverseStreamServer, fields: dict[str, Any], points: list[Any]
) -> None:
    for _ in range(2):
        answer(bedrock)
    first = http.post("/v1/responses", json={"model": MODEL, "input": "Hello"}).json()["id"]
    chain = {"previous_response_id": first} if "previous_response_id" in fields else {}

    answered = http.post("/v1/responses/compact", json={"model": MODEL, "input": "Hi"} | fields | chain)

    assert answered.status_code == 200
    kept = points_in(bedrock)
    assert kept[:1] == points
    assert all(point == POINT for point in kept[1:])


@pytest.mark.parametrize("mark", [True, "explicit", {"ttl": 5}])
def test_unusable_hints_are_accepted_and_only_what_applies_is_shown(
    http: httpx.Client, bedrock: ConverseStreamServer, mark: object
) -> None:
    hints = {"prompt_cache_options": {"ttl": 3600}, "prompt_cache_retention": "1w"}
    part = {"text": "Hello", "prompt_cache_breakpoint": mark}
    for _ in range(2):
        answer(bedrock)

    content = [{"type": "input_text", **part}]
    response = http.post(
        "/v1/responses", json={"model": MODEL, "input": [{"role": "user", "content": content}]} | hints
    )
    messages = [{"role": "user", "content": [{"type": "text", **part}]}]
    completion = http.post("/v1/chat/completions", json={"model": MODEL, "messages": messages} | hints)

    assert (response.status_code, completion.status_code) == (200, 200)
    shown = response.json()
    assert shown["prompt_cache_options"] == {"mode": "implicit", "ttl": "30m"}
    assert shown["prompt_cache_retention"] is None


@pytest.mark.parametrize(("mark", "points"), [({}, []), ({"prompt_cache_breakpoint": {"mode": "explicit"}}, [POINT])])
def test_a_chat_completion_is_cached_if_it_asks(
    http: httpx.Client, bedrock: ConverseStreamServer, mark: dict[str, Any], points: list[Any]
) -> None:
    answer(bedrock)
    content = [{"type": "text", "text": "Hello", **mark}]
    options = {"prompt_cache_options": {"mode": "explicit"}} if mark else {}

    completion = http.post(
        "/v1/chat/completions",
        json={"model": MODEL, "messages": [{"role": "user", "content": content}], **options},
    ).json()

    assert points_in(bedrock) == points
    assert completion["usage"]["prompt_tokens_details"] == {"cached_tokens": 100, "cache_write_tokens": 20}
