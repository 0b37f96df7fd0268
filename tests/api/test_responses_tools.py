"""Functions that the client runs, and which tools the model may or must call."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    TIME,
    WEATHER,
    Body,
    follow,
    item_of,
    output_for,
    respond,
    text_of,
    types_of,
    user,
)

from stint.domain.tools import ToolChoice

BOTH = "call: get_weather {}\ncall: get_time {}"
TOOLS = [WEATHER, TIME]
WEATHER_ONLY = [{"type": "function", "name": "get_weather"}]


def names(response: Body) -> list[str]:
    return [item["name"] for item in response["output"] if item["type"] == "function_call"]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (None, "auto"),
        ("required", "required"),
        ({"type": "function", "name": "get_time"}, "get_time"),
    ],
)
def test_the_model_is_told_how_to_choose(http: httpx.Client, app_fixture: AppFixture, choice: Any, told: str) -> None:
    response = respond(http, tools=TOOLS, tool_choice=choice, model="recorded/m")

    assert app_fixture.last_request.tool_choice == told
    assert isinstance(app_fixture.last_request.tool_choice, ToolChoice) == (told in ("auto", "required"))
    assert response["tool_choice"] == (choice or "auto")


def test_a_function_must_be_called_where_that_is_chosen(http: httpx.Client) -> None:
    assert names(respond(http, "Hello", tools=TOOLS, tool_choice="required")) == ["get_weather"]
    assert names(respond(http, "Hello", tools=TOOLS, tool_choice={"type": "function", "name": "get_time"})) == [
        "get_time"
    ]
    assert names(respond(http, BOTH, tools=TOOLS, tool_choice="none")) == []


def test_each_request_that_asks_for_a_call_gets_one(http: httpx.Client) -> None:
    asked = respond(http, "Hello", tools=TOOLS, tool_choice="required")
    output = output_for(item_of(asked, "function_call"))

    again = respond(http, [output, user("more")], previous_response_id=asked["id"], tools=TOOLS, tool_choice="required")

    assert names(again) == ["get_weather"]


def test_only_allowed_tools_are_called_whatever_the_model_wants(http: httpx.Client, app_fixture: AppFixture) -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": WEATHER_ONLY}

    events = follow(http, BOTH, tools=TOOLS, tool_choice=choice, model="recorded/m")

    response = events[-1]["response"]
    assert names(response) == ["get_weather"]
    assert [tool.name for tool in app_fixture.last_request.tools] == ["get_weather"]
    assert [tool["name"] for tool in response["tools"]] == ["get_weather", "get_time"]
    assert response["tool_choice"] == choice


def test_a_call_that_is_not_allowed_is_told_to_the_model_alone(http: httpx.Client) -> None:
    choice = {"type": "allowed_tools", "tools": WEATHER_ONLY}

    response = respond(http, "call: get_time {}", tools=TOOLS, tool_choice=choice)

    assert types_of(response) == ["message"]
    assert "There is no tool named 'get_time'" in text_of(response)


def test_one_call_at_once_where_that_is_wished(http: httpx.Client) -> None:
    assert names(respond(http, BOTH, tools=TOOLS)) == ["get_weather", "get_time"]
    assert names(respond(http, BOTH, tools=TOOLS, parallel_tool_calls=False)) == ["get_weather"]


def test_a_call_is_streamed_as_the_model_wrote_it(http: httpx.Client) -> None:
    events = follow(http, 'call: get_weather {"city":  "Bern"}', tools=TOOLS)

    [done] = [event for event in events if event["type"] == "response.function_call_arguments.done"]
    assert done["arguments"] == '{"city":  "Bern"}'
    assert item_of(events[-1]["response"], "function_call")["arguments"] == done["arguments"]


def test_arguments_that_are_no_object_are_given_back_to_the_model(http: httpx.Client) -> None:
    response = respond(http, "call: get_weather [1", tools=TOOLS)

    assert types_of(response) == ["message"]
    assert "not a JSON object" in text_of(response)


def test_a_tool_that_nobody_declared_is_none(http: httpx.Client) -> None:
    for name in ("web_search", "no_such_tool"):
        response = respond(http, f"call: {name} {{}}", tools=[WEATHER])

        assert types_of(response) == ["message"]


def test_outputs_may_be_sent_to_a_response_that_is_not_stored(http: httpx.Client, llama_stack: httpx.Client) -> None:
    asked = respond(http, BOTH, tools=TOOLS, store=False)
    calls = asked["output"]

    answered = respond(http, [user(BOTH), *calls, *map(output_for, calls)], tools=TOOLS, store=False)
    missing = respond(llama_stack, [user("go"), *calls, output_for(calls[0])], tools=TOOLS, store=False)

    assert text_of(answered) == "get_weather answered: sunny\nget_time answered: sunny"
    assert "get_time answered: There is no result for this call." in text_of(missing)
