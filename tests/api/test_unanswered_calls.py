"""Calls of functions without an output: refused at /v1 as at OpenAI, closed for the model at Llama Stack's address."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import WEATHER, assert_refused, post, respond, text_of, user

Body = dict[str, Any]
CALL = {"type": "function_call", "call_id": "call_9", "name": "get_weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_9", "output": "sunny"}
ASK = "call: get_weather {}"


def outputs(response: Body) -> list[Body]:
    return [
        {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
        for item in response["output"]
        if item["type"] == "function_call"
    ]


def continued(http: httpx.Client, way: str, said: list[Body], **fields: Any) -> httpx.Response:
    """Continue a talk that ends with an open call."""
    conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None
    asked = respond(http, ASK, tools=[WEATHER], conversation=conversation)
    match way:
        case "conversation":
            return post(http, said, conversation=conversation, **fields)
        case "previous_response_id":
            return post(http, said, previous_response_id=asked["id"], **fields)
        case "references":
            references = [{"type": "item_reference", "id": item["id"]} for item in asked["output"]]
            return post(http, [user("go"), *references, *said], **fields)
        case _:
            return post(http, [user("go"), *asked["output"], *said], **fields)


@pytest.mark.parametrize(
    ("way", "fields"),
    [
        ("previous_response_id", {}),
        ("conversation", {"stream": True}),
        ("conversation", {"background": True}),
        ("items", {"tools": [WEATHER]}),
        ("references", {}),
    ],
)
def test_a_call_without_an_output_is_refused(http: httpx.Client, way: str, fields: Body) -> None:
    error = assert_refused(continued(http, way, [user("never mind")], **fields), 400, "missing_tool_output")

    assert error["message"] == "No tool output found for function call call_1."
    assert error["param"] == "input"


@pytest.mark.parametrize("way", ["previous_response_id", "conversation", "items", "references"])
def test_llama_stacks_address_takes_it(llama_stack: httpx.Client, way: str) -> None:
    answer = continued(llama_stack, way, [user("say: fine")])

    assert answer.status_code == 200
    assert text_of(answer.json()) == "fine"


def test_every_call_needs_its_own_output(http: httpx.Client) -> None:
    asked = respond(http, "call: get_weather {}\ncall: get_weather {}", tools=[WEATHER])
    first, second = outputs(asked)

    some = post(http, [first], previous_response_id=asked["id"])
    both = post(http, [second, first], previous_response_id=asked["id"])

    assert second["call_id"] in assert_refused(some, 400, "missing_tool_output")["message"]
    assert both.status_code == 200


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ([user("go"), CALL, OUTPUT], 200),
        ([user("go"), CALL, OUTPUT, user("and?")], 200),
        ([user("go"), CALL, OUTPUT, CALL | {"call_id": "call_10"}, OUTPUT | {"call_id": "call_10"}], 200),
        ([user("go"), CALL, OUTPUT, CALL, OUTPUT], 200),
        ([user("go"), CALL, user("and?"), OUTPUT], 200),
        ([OUTPUT, user("go"), CALL], 200),
        ([OUTPUT, user("go"), CALL, CALL], 400),
        ([user("go"), CALL], 400),
        ([user("go"), CALL, user("and?")], 400),
        ([user("go"), CALL, OUTPUT, CALL], 400),
        ([user("go"), CALL, CALL | {"call_id": "call_10"}, OUTPUT], 400),
    ],
)
def test_the_input_alone_is_looked_at_too(http: httpx.Client, items: list[Body], status: int) -> None:
    assert post(http, items).status_code == status


@pytest.mark.parametrize("way", ["previous_response_id", "conversation", "items", "references"])
@pytest.mark.parametrize("order", [1, -1])
def test_an_output_may_follow_a_message(http: httpx.Client, app_fixture: AppFixture, way: str, order: int) -> None:
    """Semantic Kernel sends the message before the output."""
    output = OUTPUT | {"call_id": "call_1"}

    answer = continued(http, way, [user("and?"), output][::order], model="recorded/any")

    assert answer.status_code == 200, answer.text
    seen = app_fixture.last_request.messages
    assert [type(message).__name__ for message in seen[-3:]] == ["AssistantAnswer", "ToolResult", "UserInput"]

    body = answer.json()
    talk = (
        {"conversation": body["conversation"]["id"]} if way == "conversation" else {"previous_response_id": body["id"]}
    )
    assert post(http, "more", model="recorded/any", **talk).status_code == 200
    assert app_fixture.last_request.messages[: len(seen)] == seen, "it is stored in a form that can be read again"


def test_a_call_that_was_passed_over_once_does_not_block_the_talk(
    http: httpx.Client, llama_stack: httpx.Client
) -> None:
    asked = respond(http, ASK, tools=[WEATHER])
    passed = respond(llama_stack, "say: fine", previous_response_id=asked["id"])

    assert post(http, "say: more", previous_response_id=passed["id"]).status_code == 200


def test_an_output_that_belongs_to_no_call_is_named_first(http: httpx.Client) -> None:
    asked = respond(http, ASK, tools=[WEATHER])

    error = assert_refused(post(http, [OUTPUT], previous_response_id=asked["id"]), 400, "invalid_request")

    assert "call_9" in error["message"]


def test_a_conversation_is_free_again_after_the_refusal(http: httpx.Client) -> None:
    conversation = http.post("/v1/conversations").json()["id"]
    asked = respond(http, ASK, tools=[WEATHER], conversation=conversation)

    assert_refused(post(http, "well?", conversation=conversation), 400, "missing_tool_output")

    assert post(http, outputs(asked), conversation=conversation).status_code == 200


def test_counting_and_compacting_take_what_is_open(http: httpx.Client, app_fixture: AppFixture) -> None:
    asked = respond(http, ASK, tools=[WEATHER])
    body = {"model": "scripted/demo", "previous_response_id": asked["id"], "input": "well?"}

    for path in ("input_tokens", "compact"):
        assert http.post(f"/v1/responses/{path}", json=body).status_code == 200


def test_a_client_may_send_a_round_again_with_the_next_output(http: httpx.Client) -> None:
    """Semantic Kernel's agent does."""
    question = "repeat: 2\ncall: get_weather {}"
    first = respond(http, question, tools=[WEATHER])
    second = post(http, [user(question), *outputs(first)], previous_response_id=first["id"], tools=[WEATHER]).json()
    repeated = [user(question), *outputs(first), *outputs(second)]

    third = post(http, repeated, previous_response_id=second["id"], tools=[WEATHER]).json()

    assert text_of(third) == "get_weather answered: sunny"
    listed = http.get(f"/v1/responses/{third['id']}/input_items").json()["data"]
    assert [item["type"] for item in listed[:3]] == ["function_call_output", "function_call_output", "message"]
    other = [{**outputs(first)[0], "output": "rain"}, *outputs(second)]
    refused = assert_refused(post(http, other, previous_response_id=second["id"]), 400, "invalid_request")
    assert refused["param"] == "input[0]"
