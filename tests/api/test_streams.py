import json

import httpx
from tests.api.api_client import (
    WEATHER,
    data,
    open_session,
    payloads,
    post_silent,
    resume,
    say,
    stream,
    turn,
    turns_of,
    user,
)
from tests.api.app_fixture import AppFixture

EVENTS = {
    "turn_start": ["event_type", "turn_id"],
    "step_start": ["event_type", "step_type", "step_id", "metadata"],
    "step_progress": ["event_type", "step_type", "step_id", "delta"],
    "step_complete": ["event_type", "step_type", "step_id", "step_details"],
    "turn_complete": ["event_type", "turn"],
    "turn_awaiting_input": ["event_type", "turn"],
}


def test_a_stream_is_numbered_data_lines_and_empty_lines_with_the_turn_last(http: httpx.Client) -> None:
    response = say(http, open_session(http), "Good morning", stream=True)

    lines = response.content.split(b"\n")
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert lines[:-1:3] == [b"id: %d" % number for number in range(len(lines) // 3)]
    assert all(line.startswith(b'data: {"event":{"payload":{') for line in lines[1::3])
    assert set(lines[2::3]) == {b""}
    assert lines[-1] == b""
    assert json.loads(lines[-3][6:])["event"]["payload"]["event_type"] == "turn_complete"


def test_events_have_llama_stacks_keys_in_order(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])

    events = stream(http, session, "say: Let me look.\nget_weather in Ulm")
    events += payloads(resume(http, session, events[-1]["turn"], "sunny", stream=True))

    assert {event["event_type"] for event in events} == set(EVENTS)
    assert all(list(event) == EVENTS[event["event_type"]] for event in events)
    assert [event["metadata"] for event in events if event["event_type"] == "step_start"] == [{}, {}]
    texts, calls = [
        [event["delta"] for event in events if event.get("delta", {}).get("type") == kind]
        for kind in ("text", "tool_call")
    ]
    assert all(list(delta) == ["type", "text"] for delta in texts)
    assert all(list(delta) == ["type", "tool_call", "parse_status"] for delta in calls)
    assert all(list(delta["tool_call"]) == ["call_id", "tool_name", "arguments", "arguments_json"] for delta in calls)


def test_a_turn_starts_with_its_id_and_every_step_with_its_own(http: httpx.Client) -> None:
    session = open_session(http)

    events = stream(http, session, "say: one two three")

    [kept] = turns_of(http, session)
    assert events[0] == {"event_type": "turn_start", "turn_id": kept["turn_id"]}
    assert [event["event_type"] for event in events[1:]] == [
        "step_start",
        *["step_progress"] * 3,
        "step_complete",
        "turn_complete",
    ]
    assert {event["step_id"] for event in events[1:-1]} == {kept["steps"][0]["step_id"]}
    assert events[-2]["step_details"] == kept["steps"][0]
    assert events[-1]["turn"] == kept


def test_line_breaks_of_every_kind_stay_inside_their_event(http: httpx.Client) -> None:
    session = open_session(http, model="faulty/line-breaks")
    text = "one\u2028two\u0085three\u2029four\nfive\rsix"

    response = say(http, session, "Hello", stream=True)

    assert payloads(response)[-1]["turn"]["output_message"]["content"] == text
    assert len(response.text.splitlines()) == len(response.content.split(b"\n")) - 1
    assert turn(http, session, "Hello")["output_message"]["content"] == text


def test_events_arrive_while_the_model_still_thinks(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="faulty/slow")
    body = {"messages": [user("Hello")], "stream": True}

    with http.stream("POST", f"{session}/turn", json=body) as response:
        lines = response.iter_lines()
        first = [next(lines), next(lines)]
        app_fixture.faulty.silence.set()  # until then the model says nothing
        rest = list(lines)

    assert "turn_start" in first[1]
    assert "turn_complete" in rest[-2]


def test_a_silent_stream_gets_comments_without_empty_lines(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="faulty/slow")

    response = post_silent(http, app_fixture, f"{session}/turn", {"messages": [user("Hello")], "stream": True})

    assert response.text.count(": keep-alive\n") >= 2
    assert ": keep-alive\n\n" not in response.text  # after an id, clients take the empty line for an event
    assert all(line.startswith(("id: ", "data: ", ":")) for line in response.text.split("\n") if line)
    assert payloads(response)[-1]["turn"]["output_message"]["content"] == "awake"


def test_a_stream_that_is_not_silent_gets_none(http: httpx.Client) -> None:
    response = say(http, open_session(http, model="faulty/quick-steps"), "Hello", stream=True)

    assert ":" not in {line[:1] for line in response.text.rpartition("step_progress")[0].split("\n")}
    assert payloads(response)[-1]["turn"]["output_message"]["content"] == "tick " * 12


def test_a_failure_is_the_last_event_and_the_turn_is_kept(http: httpx.Client) -> None:
    session = open_session(http)

    response = say(http, session, "say: one two three\nfail: after 2 words", stream=True)

    [*events, failure] = data(response)
    [kept] = turns_of(http, session)
    assert response.status_code == 200
    assert [event["event"]["payload"]["event_type"] for event in events] == [
        "turn_start",
        "step_start",
        "step_progress",
        "step_progress",
    ]
    assert list(failure) == ["error"]
    assert list(failure["error"]) == ["message", "type", "code", "param", "turn_id"]
    assert (failure["error"]["code"], failure["error"]["turn_id"]) == ("model_error", kept["turn_id"])
    assert kept["status"] == "failed"
    assert kept["error"] == {key: failure["error"][key] for key in ("message", "type", "code", "param")}


def test_a_fault_of_the_server_in_a_stream_tells_nothing_of_its_inside(http: httpx.Client) -> None:
    response = say(http, open_session(http, model="faulty/crash"), "Hello", stream=True)

    failure = data(response)[-1]["error"]
    assert failure["code"] == "server_error"
    assert "ZeroDivision" not in response.text
    assert "adapter" not in response.text


def test_a_slow_answer_begins_with_spaces(http: httpx.Client, app_fixture: AppFixture) -> None:
    quick = say(http, open_session(http), "say: done")
    slow = post_silent(
        http, app_fixture, f"{open_session(http, model='faulty/slow')}/turn", {"messages": [user("Hello")]}
    )

    assert quick.text.startswith("{")
    assert slow.text.startswith("  ")
    assert slow.headers["content-type"] == "application/json"
    assert slow.json()["output_message"]["content"] == "awake"


def test_a_failure_after_the_first_space_is_a_failed_turn(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http, model="faulty/slow-failure")

    response = post_silent(http, app_fixture, f"{session}/turn", {"messages": [user("Hello")]})

    assert (response.status_code, response.text[:2]) == (200, "  ")
    assert response.json() == turns_of(http, session)[0]
    assert (response.json()["status"], response.json()["error"]["code"]) == ("failed", "model_error")


def test_the_next_turn_may_begin_as_soon_as_the_last_event_was_read(http: httpx.Client) -> None:
    session = open_session(http, client_tools=[WEATHER])
    body = {"messages": [{"role": "user", "content": "get_weather in Ulm"}], "stream": True}

    with http.stream("POST", f"{session}/turn", json=body) as response:
        for line in response.iter_lines():
            if "turn_awaiting_input" in line:
                paused = json.loads(line[6:])["event"]["payload"]["turn"]
                done = resume(http, session, paused, "sunny").json()

    assert done["status"] == "completed"
    assert turn(http, session, "say: next")["status"] == "completed"
