"""Responses in the background over HTTP; the worker runs in the test."""

import httpx
import pytest
from tests.api.api_client import post_silent
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import (
    RESPONSES,
    UNKNOWN,
    assert_refused,
    events_of,
    get,
    kinds,
    openai_client,
    post,
    respond,
    text_of,
)


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_a_response_is_answered_at_once_and_ends_later(http: httpx.Client, app_fixture: AppFixture, base: str) -> None:
    body = {"model": "scripted/demo", "input": "say: Later.", "background": True, "metadata": {"order": "7"}}

    queued = http.post(f"{base}/responses", json=body).json()
    app_fixture.work_off()
    done = http.get(f"{base}/responses/{queued['id']}").json()

    assert (queued["status"], queued["background"], queued["output"]) == ("queued", True, [])
    assert (done["status"], done["metadata"], text_of(done)) == ("completed", {"order": "7"}, "Later.")
    listed = http.get(f"{base}/responses").json()["data"]
    assert [each["status"] for each in listed] == ["completed"]


def test_a_response_goes_on_from_one_in_the_background(http: httpx.Client, app_fixture: AppFixture) -> None:
    first = respond(http, "My name is Ada.", background=True)
    too_soon = post(http, "And mine?", previous_response_id=first["id"])
    app_fixture.work_off()

    second = respond(http, "say: Hello, Ada.", previous_response_id=first["id"])

    assert_refused(too_soon, 409, "response_in_progress")
    assert second["status"] == "completed"


def test_keys_of_tools_are_refused_by_the_name_of_their_header(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "scripted/demo", "input": "Hello", "background": True}
    keys = {"X-LlamaStack-Provider-Data": '{"tavily_search_api_key": "secret"}'}

    answer = http.post(RESPONSES, json=body, headers=keys)

    error = assert_refused(answer, 400, "invalid_request")
    assert error["param"] == "X-LlamaStack-Provider-Data"
    assert app_fixture.queue.tasks == []


def test_a_number_of_an_event_needs_a_stream(http: httpx.Client) -> None:
    response = respond(http)

    numbered = http.get(f"{RESPONSES}/{response['id']}?starting_after=3")

    assert assert_refused(numbered, 400, "invalid_request")["param"] == "starting_after"


@pytest.mark.parametrize("path", ["/cancel", "?stream=true"])
def test_a_response_that_is_not_there_is_404(http: httpx.Client, path: str) -> None:
    method = "POST" if path == "/cancel" else "GET"

    assert_refused(http.request(method, f"{RESPONSES}/{UNKNOWN}{path}"), 404, "response_not_found")


def test_a_response_that_waits_is_cancelled(http: httpx.Client, app_fixture: AppFixture) -> None:
    queued = respond(http, background=True)

    cancelled = http.post(f"{RESPONSES}/{queued['id']}/cancel").json()
    app_fixture.work_off()

    assert cancelled == get(http, queued["id"])
    assert (cancelled["status"], cancelled["error"], cancelled["output"]) == ("cancelled", None, [])


def test_a_stream_follows_the_worker_and_can_be_taken_up_anywhere(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "scripted/demo", "input": "long: 30 words", "background": True, "stream": True}
    with app_fixture.working():
        answer = http.post(RESPONSES, json=body)

    events = events_of(answer.text)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("data: [DONE]\n\n")
    assert kinds(events)[:3] == ["created", "queued", "in_progress"]
    assert kinds(events)[-1] == "completed"
    response_id = events[0]["response"]["id"]
    rest = http.get(f"{RESPONSES}/{response_id}?stream=true&starting_after=4")
    assert events_of(rest.text) == events[5:]
    assert events_of(http.get(f"{RESPONSES}/{response_id}?stream=true").text) == events


def test_a_silent_stream_gets_signs_of_life(http: httpx.Client, app_fixture: AppFixture) -> None:
    body = {"model": "faulty/slow", "input": "Hello", "background": True, "stream": True}
    with app_fixture.working():
        answer = post_silent(http, app_fixture, RESPONSES, body)

    assert ":" in [block[:1] for block in answer.text.split("\n\n")]


def test_openai_takes_up_a_stream_where_it_left_it(server: Served, app_fixture: AppFixture) -> None:
    with openai_client(server) as client, app_fixture.working():
        with client.responses.create(
            model="scripted/demo", input="long: 20 words", background=True, stream=True
        ) as stream:
            first = next(iter(stream))
        assert first.type == "response.created"

        rest = list(client.responses.retrieve(first.response.id, stream=True, starting_after=first.sequence_number))

        assert [event.sequence_number for event in rest] == list(range(1, len(rest) + 1))
        assert rest[-1].type == "response.completed"
