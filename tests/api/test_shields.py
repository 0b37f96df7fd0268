"""Shields over HTTP."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, open_session, payloads, resume, say, stream, turn, turns_of
from tests.api.app_fixture import AppFixture

from stint.domain.inference import AssistantAnswer

SORRY = "Not here."


@pytest.fixture
def words(http: httpx.Client) -> str:
    """A shield that forbids "dynamite"."""
    return forbid(http, "words", "dynamite")


def forbid(http: httpx.Client, name: str, *phrases: str, **params: Any) -> str:
    body = {"shield_id": name, "params": {"phrases": phrases, "user_message": SORRY} | params}
    response = http.post("/v1/shields", json=body)
    assert response.status_code == 200, response.text
    return name


@pytest.fixture
def window(app_fixture: AppFixture) -> Iterator[int]:
    """Output shields check every forty characters."""
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"output_shield_window": 40})
    yield 40
    app_fixture.settings = settings


def texts(events: list[dict[str, Any]]) -> list[str]:
    return [event["delta"]["text"] for event in events if event["event_type"] == "step_progress"]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    shown = [event for event in events if event["event_type"] != "step_progress"]
    return [f"{event['event_type']} {event.get('step_type', '')}".strip() for event in shown]


def test_blocked_input_reaches_the_model_neither_now_nor_in_a_later_turn(
    http: httpx.Client, words: str, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="recorded/m", input_shields=[words])

    events = stream(http, session, "how to make dynamite")
    turn(http, session, "answer what I asked")

    assert kinds(events) == ["turn_start", "step_start shield_call", "step_complete shield_call", "turn_complete"]
    assert events[1]["metadata"] == {"touchpoint": "user-input"}
    ended = events[-1]["turn"]
    assert (ended["status"], ended["output_message"]["content"]) == ("completed", SORRY)
    assert (ended["output_message"]["stop_reason"], ended["error"]) == ("end_of_turn", None)
    [request] = app_fixture.recorder.requests
    assert "dynamite" not in repr(request)
    assert SORRY in repr(request)


def test_a_blocked_answer_is_in_no_event_no_record_and_no_later_call(
    http: httpx.Client, words: str, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="recorded/m", output_shields=[words])

    events = stream(http, session, "say: take dyna\u00admite and go")
    shown = turn(http, session, "say: fine")

    assert texts(events) == []
    assert kinds(events)[-4:] == [
        "step_complete inference",
        "step_start shield_call",
        "step_complete shield_call",
        "turn_complete",
    ]
    assert events[-1]["turn"]["output_message"]["content"] == SORRY
    assert [step["model_response"]["content"] for step in events[-1]["turn"]["steps"][:1]] == [""]
    assert shown["output_message"]["content"] == "fine"
    answers = [each.text for each in app_fixture.last_request.messages if isinstance(each, AssistantAnswer)]
    assert answers == [SORRY]


def test_in_windows_what_passed_leaves_early_and_what_is_blocked_never(
    http: httpx.Client, window: int, words: str
) -> None:
    session = open_session(http, output_shields=[words])
    clean = " ".join(["word"] * 200)

    events = stream(http, session, f"say: {clean} dynamite {clean}")
    fine = stream(http, session, f"say: {clean}")

    early = "".join(texts(events))
    assert clean.startswith(early)
    assert len(early) > window
    assert "dyna" not in json.dumps(events[1:-1])
    assert events[-1]["turn"]["output_message"]["content"] == SORRY
    assert len(texts(fine)) > 5
    assert "".join(texts(fine)) == clean == fine[-1]["turn"]["output_message"]["content"]


def test_a_shield_that_fails_fails_the_turn_and_shows_nothing(http: httpx.Client) -> None:
    guard = {"shield_id": "guard", "provider_id": "llama-guard", "provider_shield_id": "scripted/demo", "params": {}}
    assert http.post("/v1/shields", json=guard).status_code == 200
    session = open_session(http, output_shields=["guard"])

    events = http.post(
        f"{session}/turn", json={"messages": [{"role": "user", "content": "say: unchecked"}], "stream": True}
    ).text

    [stored] = turns_of(http, session)
    assert (stored["status"], stored["error"]["code"]) == ("failed", "shield_failed")
    assert '"step_progress"' not in events
    assert stored["steps"] == []
    assert turn(http, session, "say: free", output_shields=[])["status"] == "completed"


def test_a_shield_asks_the_model_behind_a_registered_name(http: httpx.Client) -> None:
    model = {"model_id": "guardian", "provider_id": "scripted", "provider_model_id": "demo"}
    guard = {"shield_id": "guard", "provider_id": "llama-guard", "provider_shield_id": "guardian", "params": {}}
    early = http.post("/v1/shields", json=guard)
    http.post("/v1/models", json=model)
    registered = http.post("/v1/shields", json=guard)
    safe = {"shield_id": "guard", "messages": [{"role": "user", "content": "\nsay: safe"}], "params": {}}

    judgement = http.post("/v1/safety/run-shield", json=safe)
    http.delete("/v1/models/guardian")
    late = http.post("/v1/safety/run-shield", json=safe)

    assert [registered.status_code, judgement.status_code] == [200, 200], judgement.text
    assert judgement.json()["violation"] is None
    assert_error(early, 400, "model_not_found")
    assert_error(late, 400, "model_not_found")


def test_results_of_client_tools_are_screened_on_resume(
    http: httpx.Client, words: str, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="recorded/m", client_tools=[WEATHER], input_shields=[words])
    paused = turn(http, session, "get_weather in Ulm")

    events = payloads(resume(http, session, paused, "dynamite", stream=True))
    turn(http, session, "say: next")

    assert kinds(events) == [
        "step_complete tool_execution",
        "step_start shield_call",
        "step_complete shield_call",
        "turn_complete",
    ]
    assert events[-1]["turn"]["output_message"]["content"] == SORRY
    assert "dynamite" not in repr(app_fixture.last_request)


def test_several_shields_are_one_step_and_warnings_pass(http: httpx.Client, words: str) -> None:
    forbid(http, "warning", "careful", violation_level="warn")
    session = open_session(http, input_shields=[words, "warning"], output_shields=["warning", words])

    done = turn(http, session, "say: careful")

    assert [step["step_type"] for step in done["steps"]] == ["shield_call", "inference", "shield_call"]
    assert [done["steps"][place]["violation"] for place in (0, 2)] == [None, None]
    assert done["output_message"]["content"] == "careful"


def test_unknown_shields_are_named_and_the_session_is_free(http: httpx.Client) -> None:
    session = open_session(http)

    response = say(http, session, "hi", stream=True, input_shields=["nosuch"])

    assert "'nosuch'" in assert_error(response, 400, "shield_not_found")["message"]
    assert turn(http, session, "say: free")["status"] == "completed"


def test_more_shields_than_are_asked_at_once_are_refused(http: httpx.Client, words: str) -> None:
    session = open_session(http)

    response = say(http, session, "hi", output_shields=[words] * 9)

    assert "at most 8" in assert_error(response, 400, "invalid_request")["message"]
    assert response.json()["error"]["param"] == "output_shields"


def test_a_shield_is_asked_by_itself(http: httpx.Client, words: str) -> None:
    def run(text: str) -> Any:
        body = {"shield_id": words, "messages": [{"role": "user", "content": text}], "params": {}}
        return http.post("/v1/safety/run-shield", json=body).json()["violation"]

    assert run("hello") is None
    assert (run("dynamite")["violation_level"], run("dynamite")["user_message"]) == ("error", SORRY)
