"""Reasoning of models: returned, encrypted, and sent back to them."""

from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    WEATHER,
    Body,
    assert_refused,
    follow,
    get,
    item_of,
    kinds,
    output_for,
    post,
    respond,
    text_of,
    types_of,
    user,
)
from tests.servers import converse_stream as converse
from tests.servers.chat_completions import ChatCompletionsServer, stream, tool_call
from tests.servers.converse_stream import ConverseStreamServer

from stint.domain.inference import AssistantAnswer

ENCRYPTED = "reasoning.encrypted_content"
THINK = "think: Well now\ncall: get_weather {}"
LOW = {"effort": "low", "summary": "auto"}
CLAUDE = "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0"


def resume(http: httpx.Client, asked: Body, way: str, **fields: Any) -> Body:
    """Answer the call of a response, in one of the ways in which clients carry on."""
    output = output_for(item_of(asked, "function_call"))
    if way == "items":
        return respond(http, [user("go"), *asked["output"], output], tools=[WEATHER], store=False, **fields)
    if way == "references":
        told = [{"type": "item_reference", "id": item["id"]} for item in asked["output"]]
        return respond(http, [user("go"), *told, output], tools=[WEATHER], **fields)
    if way == "conversation":
        return respond(http, [output], conversation=asked["conversation"], tools=[WEATHER], **fields)
    return respond(http, [output], previous_response_id=asked["id"], tools=[WEATHER], **fields)


WAYS = ["items", "references", "conversation", "previous_response_id"]


@pytest.mark.parametrize("way", WAYS)
def test_thoughts_go_back_with_their_signature(http: httpx.Client, app_fixture: AppFixture, way: str) -> None:
    conversation = http.post("/v1/conversations").json()["id"] if way == "conversation" else None
    asked = respond(http, THINK, tools=[WEATHER], include=[ENCRYPTED], store=way != "items", conversation=conversation)

    answered = resume(http, asked, way, model="recorded/m")

    answer = next(message for message in app_fixture.last_request.messages if isinstance(message, AssistantAnswer))
    assert answer.reasoning is not None
    assert (answer.reasoning.text, answer.reasoning.signature[:9]) == ("Well now", "scripted-")
    assert text_of(answered) == "get_weather answered: sunny"


def test_claude_gets_its_signed_thoughts_back(http: httpx.Client, bedrock: ConverseStreamServer) -> None:
    thought = converse.thought_block("Well ", "now", signature="signed-by-claude")
    call = converse.tool_block("call_1", "get_weather", "{}", block=1)
    bedrock.script(converse.stream(*thought, *call, stop="tool_use"))
    fields: Body = {"model": CLAUDE, "reasoning": LOW, "tools": [WEATHER], "max_output_tokens": 4000}
    asked = respond(http, "go", include=[ENCRYPTED], **fields)

    answered = resume(http, asked, "previous_response_id", model=CLAUDE, reasoning=LOW, max_output_tokens=4000)

    assert types_of(asked) == ["reasoning", "function_call"]
    assert item_of(asked, "reasoning")["summary"] == [{"type": "summary_text", "text": "Well now"}]
    said = bedrock.bodies[-1]["messages"][1]["content"][0]
    assert said["reasoningContent"]["reasoningText"] == {"text": "Well now", "signature": "signed-by-claude"}
    assert text_of(answered).startswith("You said: ")


def test_thoughts_that_were_hidden_go_back_too(http: httpx.Client, bedrock: ConverseStreamServer) -> None:
    hidden = converse.event(
        "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"redactedContent": "c2VjcmV0"}}}
    )
    call = converse.tool_block("call_1", "get_weather", "{}", block=1)
    bedrock.script(converse.stream(hidden, *call, stop="tool_use"))
    fields: Body = {"model": CLAUDE, "reasoning": LOW, "max_output_tokens": 4000}

    events = follow(http, "go", tools=[WEATHER], include=[ENCRYPTED], **fields)
    resume(http, events[-1]["response"], "items", **fields)

    assert kinds(events)[2:4] == ["output_item.added", "output_item.done"]
    assert item_of(events[-1]["response"], "reasoning")["summary"] == []
    assert "redactedContent" in str(bedrock.bodies[-1]["messages"][1]["content"][0])


def test_a_chat_completions_server_thinks_aloud(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    thoughts = [{"reasoning_content": "Well "}, {"reasoning_content": "now"}]
    chat.script(stream(*thoughts, *tool_call("call_1", "get_weather", "{}"), finish="tool_calls"))

    events = follow(http, "go", tools=[WEATHER], model="openai/m", include=[ENCRYPTED], store=False)
    asked = events[-1]["response"]
    answered = resume(http, asked, "items", model="openai/m")

    deltas = [event["delta"] for event in events if event["type"] == "response.reasoning_summary_text.delta"]
    assert deltas == ["Well ", "now"]
    assert item_of(asked, "reasoning")["encrypted_content"]
    assert text_of(answered) == "get_weather said: sunny"


def test_a_refusal_of_a_provider_is_one(http: httpx.Client, chat: ChatCompletionsServer) -> None:
    chat.script(stream({"refusal": "I "}, {"refusal": "will not."}))

    events = follow(http, "go", model="openai/m")

    [message] = events[-1]["response"]["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "I will not."}]
    respond(http, "why?", previous_response_id=events[-1]["response"]["id"], model="openai/m")
    assert [each["content"] for each in chat.bodies[-1]["messages"]] == ["go", "I will not.", "why?"]


def test_what_a_stored_response_thought_is_shown_whole_on_request(http: httpx.Client) -> None:
    response = respond(http, "think: Well | Yes")["id"]

    assert "encrypted_content" not in item_of(get(http, response), "reasoning")
    for query in (f"?include={ENCRYPTED}", f"?include[]={ENCRYPTED}"):
        assert item_of(get(http, response, query), "reasoning")["encrypted_content"]


def test_a_provider_that_cannot_reason_refuses_before_the_stream(
    http: httpx.Client, bedrock: ConverseStreamServer
) -> None:
    answer = post(http, "go", model=CLAUDE, reasoning={"effort": "high"}, max_output_tokens=16, stream=True)

    assert assert_refused(answer, 400, answer.json()["error"]["code"])["param"]
    assert bedrock.requests == []
