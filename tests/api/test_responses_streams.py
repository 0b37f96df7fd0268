"""Events of a streamed response, and their order. Every stream is checked against the grammar of Open Responses."""

from typing import Any

import httpx
import pytest
from tests.api.api_client import post_silent
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    RESPONSES,
    TIME,
    WEATHER,
    assert_refused,
    events_of,
    follow,
    get,
    kinds,
    post,
    text_of,
    types_of,
)

BEGIN = ["created", "in_progress"]
TEXT = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]
CALL = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
SUMMARY = [
    "output_item.added",
    "reasoning_summary_part.added",
    "reasoning_summary_text.delta",
    "reasoning_summary_text.done",
    "reasoning_summary_part.done",
    "output_item.done",
]
RAW = [
    "output_item.added",
    "content_part.added",
    "reasoning_text.delta",
    "reasoning_text.done",
    "content_part.done",
    "output_item.done",
]
LOW = {"effort": "low"}
TWO = "say: Look\ncall: get_weather {}\ncall: get_time {}"
CASES: list[Any] = [
    ("say: Hello there", {}, [*BEGIN, *TEXT, "completed"]),
    ("say:", {}, [*BEGIN, *(name for name in TEXT if name != "output_text.delta"), "completed"]),
    ("call: get_weather {}", {"tools": [WEATHER]}, [*BEGIN, *CALL, "completed"]),
    (TWO, {"tools": [WEATHER, TIME]}, [*BEGIN, *TEXT, *CALL, *CALL, "completed"]),
    ("think: Well now | Yes", {}, [*BEGIN, *SUMMARY, *TEXT, "completed"]),
    ("think: Well now | Yes", {"reasoning": LOW}, [*BEGIN, *RAW, *TEXT, "completed"]),
    ("think: Well\ncall: get_weather {}", {"tools": [WEATHER]}, [*BEGIN, *SUMMARY, *CALL, "completed"]),
    ("long: 20 words\ncut: 3 words", {}, [*BEGIN, *TEXT, "incomplete"]),
]  # fmt: skip


@pytest.mark.parametrize(("said", "fields", "expected"), CASES)
def test_a_stream_tells_each_item_from_its_beginning_to_its_end(
    http: httpx.Client, said: str, fields: dict[str, Any], expected: list[str]
) -> None:
    events = follow(http, said, **fields)

    assert kinds(events) == expected
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    final = events[-1]["response"]
    assert get(http, final["id"]) == final


def test_a_refusal_streams_as_one(http: httpx.Client) -> None:
    events = follow(http, "refuse: Not that")

    assert kinds(events) == [*BEGIN, *(name.replace("output_text", "refusal") for name in TEXT), "completed"]
    [message] = events[-1]["response"]["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "Not that"}]
    assert get(http, events[-1]["response"]["id"])["output"] == [message]


def test_the_deltas_are_the_words_as_they_come(http: httpx.Client) -> None:
    events = follow(http, "say: one two  three")

    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == ["one ", "two  ", "three"]


def test_a_stream_is_named_lines_each_with_an_empty_one_and_ends_with_done(http: httpx.Client) -> None:
    answer = post(http, "say: Hi", stream=True)

    blocks = answer.text.split("\n\n")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert blocks[-2:] == ["data: [DONE]", ""]
    for block, event in zip(blocks, events_of(answer.text), strict=False):
        assert block.split("\n")[0] == f"event: {event['type']}"
    assert "\r" not in answer.text


def test_events_of_items_and_parts_name_their_response(http: httpx.Client) -> None:
    """llama-stack-client 0.7 reads those without the id as other events, and its agents call no tool."""
    events = follow(http, "say: Hi")

    named = [event for event in events if "response_id" in event]
    assert kinds(named) == ["output_item.added", "content_part.added", "content_part.done", "output_item.done"]
    assert {event["response_id"] for event in named} == {events[-1]["response"]["id"]}


@pytest.mark.parametrize(
    ("said", "fields", "reason"),
    [
        ("long: 100 words", {"max_output_tokens": 16}, "max_output_tokens"),
        ("long: 100 words\nfilter: after 2 words", {}, "content_filter"),
    ],
)
def test_a_response_that_was_cut_short_says_why(
    http: httpx.Client, said: str, fields: dict[str, Any], reason: str
) -> None:
    final = follow(http, said, **fields)[-1]["response"]

    assert (final["status"], final["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert final["output"][-1]["status"] == "incomplete"
    assert final["completed_at"] is None
    assert get(http, final["id"]) == final


def test_a_model_that_fails_in_the_middle_is_an_error_event_and_a_failed_response(http: httpx.Client) -> None:
    events = follow(http, "say: one two three four\nfail: after 2 words")

    error, failed = events[-2:]
    assert kinds(events) == [*BEGIN, *TEXT, "error", "failed"]
    assert (error["code"], error["error"]["code"], error["error"]["type"]) == ("model_error",) * 3
    assert error["message"] == error["error"]["message"] == failed["response"]["error"]["message"]
    [message] = failed["response"]["output"]
    assert (failed["response"]["status"], message["status"]) == ("failed", "incomplete")
    assert message["content"][0]["text"] == "one two "
    assert get(http, failed["response"]["id"]) == failed["response"]


@pytest.mark.parametrize(
    ("said", "model", "status", "code"),
    [
        ("fail: before", "scripted/demo", 502, "model_error"),
        ("fail: overloaded", "scripted/demo", 503, "model_overloaded"),
        ("fail: context", "scripted/demo", 400, "context_length_exceeded"),
        ("Hello", "faulty/late", 504, "deadline_exceeded"),
        ("Hello", "faulty/crash", 500, "server_error"),
    ],
)
def test_a_response_that_fails_before_anything_left_is_an_error_that_names_it(
    http: httpx.Client, said: str, model: str, status: int, code: str
) -> None:
    error = assert_refused(post(http, said, model=model), status, code)

    kept = get(http, error["response_id"])
    assert (kept["status"], kept["error"]["code"]) == ("failed", code)
    assert kept["error"]["message"] == error["message"]


def test_a_response_that_fails_without_a_stream_shows_what_had_come_of_it(http: httpx.Client) -> None:
    error = assert_refused(post(http, "say: one two three\nfail: after 2 words"), 502, "model_error")

    [message] = get(http, error["response_id"])["output"]
    assert (message["status"], message["content"][0]["text"]) == ("incomplete", "one two ")


def test_a_slow_response_that_fails_is_told_as_a_failed_one(http: httpx.Client, app_fixture: AppFixture) -> None:
    answer = post_silent(http, app_fixture, RESPONSES, {"model": "faulty/slow-failure", "input": "Hello"})

    body = answer.json()
    assert (answer.status_code, answer.text[0], body["status"]) == (200, " ", "failed")
    assert get(http, body["id"]) == body


def test_a_silent_stream_is_kept_open_by_comments(http: httpx.Client, app_fixture: AppFixture) -> None:
    answer = post_silent(http, app_fixture, RESPONSES, {"model": "faulty/slow", "input": "Hello", "stream": True})

    assert ": keep-alive\n\n" in answer.text
    assert text_of(events_of(answer.text)[-1]["response"]) == "awake"


def test_a_model_that_counts_nothing_used_nothing(http: httpx.Client) -> None:
    assert follow(http, model="faulty/line-breaks")[-1]["response"]["usage"]["total_tokens"] == 0


def test_a_text_may_hold_what_some_take_for_the_end_of_a_line(http: httpx.Client) -> None:
    events = follow(http, model="faulty/line-breaks")

    assert text_of(events[-1]["response"]) == "one\u2028two\u0085three\u2029four\nfive\rsix"


def test_items_have_one_id_wherever_they_are_seen(http: httpx.Client) -> None:
    events = follow(http, "think: Well\nsay: Look\ncall: get_weather {}", tools=[WEATHER])

    final = events[-1]["response"]
    ids = [item["id"] for item in final["output"]]
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]
    inside = [event["item_id"] for event in events if "item_id" in event]
    output = {"type": "function_call_output", "call_id": final["output"][2]["call_id"], "output": "sunny"}
    chained = http.post(RESPONSES, json={"previous_response_id": final["id"], "input": [output]}).json()
    seen = http.get(f"{RESPONSES}/{chained['id']}/input_items?order=asc").json()["data"]
    assert types_of(final) == ["reasoning", "message", "function_call"]
    assert added == done == ids == list(dict.fromkeys(inside))
    assert [item["id"] for item in seen[1:4]] == ids
