"""Responses that continue others."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    RESPONSES,
    TIME,
    UNKNOWN,
    WEATHER,
    Body,
    assert_refused,
    follow,
    output_for,
    post,
    respond,
    text_of,
    user,
)
from tests.script_model import words_of

from stint.domain.inference import AssistantAnswer, SystemText, ToolResult


def words(app_fixture: AppFixture) -> list[str]:
    """Return the last message that the recorded model received."""
    return [words_of(message) for message in app_fixture.last_request.messages]


def chain(http: httpx.Client, *said: str, **fields: Any) -> Body:
    last: Body = {"id": None}
    for word in said:
        last = respond(http, f"say: re {word}", previous_response_id=last["id"], **fields)
    return last


def test_the_model_sees_the_chain_from_its_beginning_to_the_new_input(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    last = chain(http, "one", "two")

    response = respond(http, "three", previous_response_id=last["id"], model="recorded/m")

    assert words(app_fixture) == ["say: re one", "re one", "say: re two", "re two", "three"]
    assert response["previous_response_id"] == last["id"]


def test_instructions_are_those_of_the_request_alone(http: httpx.Client, app_fixture: AppFixture) -> None:
    first = respond(http, "one", instructions="Be brief.", model="recorded/m")
    respond(http, "two", previous_response_id=first["id"], model="recorded/m")
    without = [message for message in app_fixture.last_request.messages if isinstance(message, SystemText)]
    respond(http, "two", previous_response_id=first["id"], instructions="Be long.", model="recorded/m")

    assert without == []
    assert words(app_fixture)[0] == "Be long."
    assert "Be brief." not in words(app_fixture)


def test_calls_and_their_outputs_are_told_again(http: httpx.Client, app_fixture: AppFixture) -> None:
    asked = respond(http, "say: Look\ncall: get_weather {}\ncall: get_time {}", tools=[WEATHER, TIME])
    weather, clock = (item for item in asked["output"] if item["type"] == "function_call")
    told = respond(http, [output_for(clock, "noon"), output_for(weather)], previous_response_id=asked["id"])

    respond(http, "more", previous_response_id=told["id"], model="recorded/m")

    _, answer, *results, final, _ = app_fixture.last_request.messages
    assert isinstance(answer, AssistantAnswer)
    assert (answer.text, [call.tool_name for call in answer.tool_calls]) == ("Look", ["get_weather", "get_time"])
    named = [(each.tool_name, each.content) for each in results if isinstance(each, ToolResult)]
    assert sorted(named) == [("get_time", "noon"), ("get_weather", "sunny")]
    assert words_of(final) == text_of(told)


def test_what_was_never_there_is_not_continued(http: httpx.Client) -> None:
    for stream in (False, True):
        answer = post(http, previous_response_id=UNKNOWN, stream=stream)
        assert UNKNOWN in assert_refused(answer, 400, "previous_response_not_found")["message"]


def test_a_failed_response_is_continued_with_what_was_kept_of_it(http: httpx.Client, app_fixture: AppFixture) -> None:
    failed = follow(http, "say: one two three\nfail: after 2 words")[-1]["response"]

    respond(http, "go on", previous_response_id=failed["id"], model="recorded/m")

    assert words(app_fixture) == ["say: one two three\nfail: after 2 words", "go on"]


def test_what_is_not_to_be_stored_may_continue_what_is(http: httpx.Client, app_fixture: AppFixture) -> None:
    first = chain(http, "one")

    respond(http, "two", previous_response_id=first["id"], store=False, model="recorded/m")

    assert words(app_fixture) == ["say: re one", "re one", "two"]
    assert len(http.get(RESPONSES).json()["data"]) == 1


@pytest.mark.parametrize(("truncation", "status"), [(None, 400), ("auto", 200)])
def test_a_chain_that_is_too_long_is_cut_only_where_that_is_wished(
    http: httpx.Client, app_fixture: AppFixture, truncation: str | None, status: int
) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"history_bytes": 2500})
    app_fixture.made.clear()
    last = chain(http, "one" * 500, "two", truncation="auto")
    last = respond(http, "say: " + "three" * 300, previous_response_id=last["id"], truncation="auto")

    answer = post(http, "end", previous_response_id=last["id"], truncation=truncation, model="recorded/m")

    app_fixture.settings = settings
    assert answer.status_code == status, answer.text
    if status == 400:
        assert "truncation" in assert_refused(answer, 400, "context_length_exceeded")["message"]
    else:
        assert "one" not in "".join(words(app_fixture))
        assert words(app_fixture)[-1] == "end"


def test_the_input_items_of_a_link_are_all_that_it_was_answered_from(http: httpx.Client) -> None:
    first = chain(http, "one")
    second = respond(http, [user("two"), user("three")], previous_response_id=first["id"])

    def texts(query: str) -> list[str]:
        page = http.get(f"{RESPONSES}/{second['id']}/input_items?{query}").json()
        return [item["content"][0]["text"] for item in page["data"]]

    everything = ["say: re one", "re one", "two", "three"]
    assert texts("order=asc") == everything
    assert texts("") == everything[::-1]
    assert texts("order=asc&limit=2") == everything[:2]
