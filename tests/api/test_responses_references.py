"""Items that a request refers to in place of sending them, as Vercel's AI SDK does."""

import base64
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    MODEL,
    RESPONSES,
    WEATHER,
    Body,
    assert_refused,
    item_of,
    output_for,
    post,
    respond,
    text_of,
    user,
)
from tests.script_model import words_of

from stint.domain.inference import AssistantAnswer, Reasoning
from stint.domain.limits import MAX_REFERENCED_RESPONSES
from stint.services.responses import input_items

THOUGHT = "think: Hm\nsay: Look\ncall: get_weather {}"


def reference(item: Body) -> Body:
    return {"type": "item_reference", "id": item["id"]}


def words(app_fixture: AppFixture) -> list[str]:
    return [words_of(message) for message in app_fixture.last_request.messages]


def input_of(http: httpx.Client, response: Body, query: str = "") -> list[Body]:
    page = http.get(f"{RESPONSES}/{response['id']}/input_items?order=asc&{query}").json()
    return list(page["data"])


def test_the_output_of_a_stored_response_is_referred_to_in_a_new_request(
    http: httpx.Client, app_fixture: AppFixture
) -> None:
    asked = respond(http, THOUGHT, tools=[WEATHER])
    output = output_for(item_of(asked, "function_call"))
    told = [user("go"), *map(reference, asked["output"]), output]

    answered = respond(http, told, tools=[WEATHER], model="recorded/m")

    [_, answer, _] = app_fixture.last_request.messages
    assert isinstance(answer, AssistantAnswer)
    assert (answer.text, [call.tool_name for call in answer.tool_calls]) == ("Look", ["get_weather"])
    assert isinstance(answer.reasoning, Reasoning)
    assert (answer.reasoning.text, bool(answer.reasoning.signature)) == ("Hm", True)
    assert text_of(answered) == "get_weather answered: sunny"
    assert [item["id"] for item in input_of(http, answered)][1:4] == [item["id"] for item in asked["output"]]


def test_reasoning_that_is_referred_to_is_shown_whole_only_to_who_asks(http: httpx.Client) -> None:
    asked = respond(http, "think: Hm | Yes")

    answered = respond(http, [*map(reference, asked["output"]), user("go")])

    [hidden, *_] = input_of(http, answered)
    [shown, *_] = input_of(http, answered, "include[]=reasoning.encrypted_content")
    listed = http.get(RESPONSES).json()["data"][0]["input"]
    assert hidden == listed[0] == item_of(asked, "reasoning")
    assert shown["encrypted_content"]


def test_a_message_that_is_referred_to_brings_its_files(http: httpx.Client, app_fixture: AppFixture) -> None:
    file = {"type": "input_file", "filename": "a.txt", "file_data": base64.b64encode(b"plum jam").decode()}
    conversation = http.post("/v1/conversations", json={"items": [user([file])]}).json()["id"]
    [message] = http.get(f"/v1/conversations/{conversation}/items").json()["data"]
    first = respond(http, [user([file])])
    [own] = input_of(http, first)

    in_conversation: list[Any] = [reference(message), user("go")]
    respond(http, in_conversation, conversation=conversation, model="recorded/m")
    respond(http, [reference(own), user("go")], previous_response_id=first["id"], model="recorded/m")

    for request in app_fixture.recorder.requests:
        assert "plum jam" in words_of(request.messages[0])


def test_items_that_are_not_there_are_named(http: httpx.Client) -> None:
    kept = respond(http, "say: Plums")
    item = kept["output"][0]
    beyond = item["id"][:-2] + "07"
    gone = respond(http, "say: Pears")
    http.delete(f"{RESPONSES}/{gone['id']}")

    for missing in ("msg_1", "nonsense", beyond, gone["output"][0]["id"], "msg_" + "0" * 32):
        refused = post(http, [reference(item), {"type": "item_reference", "id": missing}, user("go")])

        error = assert_refused(refused, 400, "item_not_found")
        assert error["param"] == "input[1].id"
        assert missing in error["message"]


def test_items_of_too_many_responses_are_refused_before_one_is_read(http: httpx.Client) -> None:
    places = range(MAX_REFERENCED_RESPONSES + 1)
    references = [{"type": "item_reference", "id": f"msg_{place:032x}00"} for place in places]

    for path in (RESPONSES, f"{RESPONSES}/input_tokens", f"{RESPONSES}/compact"):
        refused = http.post(path, json={"model": MODEL, "input": [user("go"), *references]})

        error = assert_refused(refused, 400, "too_many_references")
        assert error["param"] == f"input[{MAX_REFERENCED_RESPONSES + 1}].id"
        assert "500 responses" in error["message"]
    assert_refused(post(http, [*references[1:], user("go")]), 400, "item_not_found")


def test_items_of_a_chain_count_for_no_limit(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_items, "MAX_REFERENCED_RESPONSES", 1)
    first = respond(http, "say: Plums")
    second = respond(http, "say: Pears", previous_response_id=first["id"])
    both = [reference(response["output"][0]) for response in (first, second)]

    assert post(http, [*both, user("go")], previous_response_id=second["id"]).status_code == 200
    assert_refused(post(http, [*both, user("go")]), 400, "too_many_references")


def test_references_to_large_responses_are_refused(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update={"history_bytes": 3_000}))
    said = [respond(http, "say: Plums" + "\n" + "x" * 2_000)["output"][0] for _ in range(2)]

    assert post(http, [reference(said[0]), user("go")]).status_code == 200
    assert_refused(post(http, [*map(reference, said), user("go")]), 400, "context_length_exceeded")
