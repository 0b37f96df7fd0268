from typing import Any

import httpx
import pytest
from tests.api.api_client import STEP, open_session, say, turn, turns_of, user
from tests.api.app_fixture import AppFixture

from stint.domain.inference import UserInput

TURN = [
    "turn_id",
    "session_id",
    "input_messages",
    "steps",
    "output_message",
    "output_attachments",
    "started_at",
    "completed_at",
    "status",
    "usage",
    "error",
    "receipt",
]
ANSWER = ["role", "content", "stop_reason", "tool_calls"]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel."""


def test_a_turn_has_every_key_in_llama_stacks_order_nulls_included(http: httpx.Client) -> None:
    session = open_session(http)

    answer = turn(http, session, "say: Good morning.")

    assert list(answer) == TURN
    assert answer["session_id"] == session.rpartition("/")[2]
    assert answer["input_messages"] == [{"role": "user", "content": "say: Good morning.", "context": None}]
    assert answer["output_message"] == {
        "role": "assistant",
        "content": "Good morning.",
        "stop_reason": "end_of_turn",
        "tool_calls": [],
    }
    assert list(answer["output_message"]) == ANSWER
    assert answer["output_attachments"] == []
    assert (answer["status"], answer["error"]) == ("completed", None)
    assert list(answer["usage"]) == [
        "input_tokens",
        "output_tokens",
        "total_tokens",
        "cached_tokens",
        "reasoning_tokens",
    ]
    [step] = answer["steps"]
    assert list(step) == [*STEP, "model_response", "first_token_ms", "usage"]  # the last two keys are extensions
    assert list(step["model_response"]) == ANSWER
    assert answer["started_at"] <= step["started_at"] <= step["completed_at"] <= answer["completed_at"]


def test_what_is_read_back_is_what_was_answered(http: httpx.Client) -> None:
    session = open_session(http)
    answers = [turn(http, session, f"say: {word}") for word in ("one", "two", "three")]

    path = f"{session}/turn/{answers[1]['turn_id']}"
    step = answers[1]["steps"][0]

    assert turns_of(http, session) == answers
    assert http.get(path).json() == answers[1]
    assert http.get(f"{path}/step/{step['step_id']}").json() == {"step": step}


def test_turn_ids_pick_turns_repeated_or_joined_by_commas(http: httpx.Client) -> None:
    session = open_session(http)
    a, b, c = (turn(http, session, "say: ok")["turn_id"] for _ in range(3))

    def picked(query: str) -> list[str]:
        return [each["turn_id"] for each in http.get(f"{session}?{query}").json()["turns"]]

    assert picked(f"turn_ids={c}&turn_ids={a}") == [a, c]
    assert picked(f"turn_ids={c},{a}") == [a, c]
    assert picked(f"turn_ids={b}&turn_ids=unknown") == [b]
    assert picked("turn_ids=unknown") == []


def test_every_shape_of_a_message_is_taken_and_shown_as_it_was_sent(http: httpx.Client) -> None:
    session = open_session(http, model="recorded/model")
    text, image = {"type": "text", "text": "Look."}, {"type": "image", "image": {"url": None, "data": DOT}}
    link = {"type": "image", "image": {"url": {"uri": "https://example.com/cat.png"}, "data": None}}
    messages = [
        {"role": "user", "content": "plain", "context": None},
        {"role": "user", "content": text, "context": "aside"},
        {"role": "user", "content": [text, image, link], "context": [text]},
        {"role": "tool", "call_id": "c1", "content": "42"},
    ]

    answer = http.post(f"{session}/turn", json={"messages": messages}).json()

    assert answer["status"] == "completed"
    assert answer["input_messages"] == messages


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"role": "system", "content": "x"}, "messages[0]"),
        ({"role": "assistant", "content": "x"}, "messages[0]"),
        ({"role": "user"}, "messages[0].content"),
        ({"role": "tool", "content": "x"}, "messages[0].call_id"),
        ({"role": "user", "content": ["bare"]}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "audio"}]}, "messages[0].content"),
        ({"role": "user", "content": {"type": "image", "image": {}}}, "messages[0].content"),
    ],
)
def test_a_message_of_another_shape_is_refused_by_name(http: httpx.Client, message: dict[str, Any], field: str) -> None:
    session = open_session(http)

    response = http.post(f"{session}/turn", json={"messages": [message], "stream": True})

    assert response.status_code == 400
    assert response.json()["error"]["param"].startswith(field)
    assert turns_of(http, session) == []


def test_a_turn_needs_messages_and_may_have_none_in_them(http: httpx.Client) -> None:
    session = open_session(http)

    missing = http.post(f"{session}/turn", json={"stream": False})
    empty = http.post(f"{session}/turn", json={"messages": []})

    assert (missing.status_code, missing.json()["error"]["param"]) == (400, "messages")
    assert (empty.status_code, empty.json()["input_messages"]) == (200, [])


def test_images_reach_the_model_and_every_later_call(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="recorded/model")
    image = {"type": "image", "image": {"data": DOT}}

    turn(http, session, [{"type": "text", "text": "say: seen"}, image])
    turn(http, session, "say: still seen")

    for request in app_fixture.recorder.requests:
        [shown] = [message.content for message in request.messages if isinstance(message, UserInput)][:1]
        assert isinstance(shown, list)
        assert shown[1].model_dump(exclude_none=True) == image


def test_a_failed_turn_is_kept_with_its_input_and_an_empty_output(http: httpx.Client) -> None:
    session = open_session(http)

    say(http, session, "fail: before")

    [kept] = turns_of(http, session)
    assert (kept["status"], kept["error"]["code"]) == ("failed", "model_error")
    assert kept["output_message"] == {
        "role": "assistant",
        "content": "",
        "stop_reason": "end_of_turn",
        "tool_calls": [],
    }
    assert kept["input_messages"] == [user("fail: before") | {"context": None}]
