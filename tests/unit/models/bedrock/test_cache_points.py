"""Checkpoints of the prompt cache in Converse requests."""

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import collect
from tests.servers import converse_stream as converse
from tests.servers.converse_stream import ConverseStreamServer

from stint.domain.content import ContentItem, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    InferenceRequest,
    ModelMessage,
    PromptCache,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.tools import ToolCall, ToolChoice
from stint.models.bedrock.model import Bedrock

CLAUDE, NOVA = "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "amazon.nova-pro-v1:0"
WITHOUT_CACHE = "anthropic.claude-3-haiku-20240307-v1:0"
MINUTES_ONLY = "anthropic.claude-sonnet-4-20250514-v1:0"
ADD = ToolSignature("add", "Adds", {"type": "object", "properties": {}})


def called(*call_ids: str) -> AssistantAnswer:
    calls = (ToolCall(call_id=each, tool_name="add", arguments={}, arguments_json="{}") for each in call_ids)
    return AssistantAnswer("", tuple(calls))


QUESTION = (SystemText("Be kind."), UserInput("Add"))
HISTORY = (*QUESTION, called("c1", "c2"), ToolResult("c1", "add", "1"), ToolResult("c2", "add", "2"))
ASKED = InferenceRequest(CLAUDE, QUESTION, (ADD,), cache=PromptCache())
PNG = ImageContentItem(image=ImageSource(data="iVBORw0KGgoAAAA="))


def shape(body: dict[str, Any]) -> list[str]:
    """Return the kinds of the blocks in the order of the cache. Checkpoints are "point", or their lifetime."""
    blocks = [*body.get("toolConfig", {}).get("tools", []), *body.get("system", [])]
    blocks += [block for message in body["messages"] for block in message["content"]]
    return [block["cachePoint"].get("ttl", "point") if "cachePoint" in block else next(iter(block)) for block in blocks]


async def sent(model: Bedrock, server: ConverseStreamServer, request: InferenceRequest) -> list[str]:
    await collect(model.stream(request))
    return shape(server.bodies[-1])


async def test_tools_instructions_and_both_ends_of_the_history_have_checkpoints(
    model: Bedrock, server: ConverseStreamServer
) -> None:
    assert await sent(model, server, replace(ASKED, messages=HISTORY)) == [
        *("toolSpec", "point", "text", "point"),
        *("text", "point", "toolUse", "toolUse", "toolResult", "toolResult", "point"),
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cache": None}, ["toolSpec", "text", "text"]),
        ({"tools": ()}, ["text", "point", "text", "point"]),
        ({"tool_choice": ToolChoice.none}, ["text", "point", "text", "point"]),
        ({"messages": (UserInput("Hi"),), "tools": ()}, ["text", "point"]),
        ({"model": NOVA}, ["toolSpec", "text", "point", "text", "point"]),
        ({"model": WITHOUT_CACHE}, ["toolSpec", "text", "text"]),
        ({"model": "meta.llama3-3-70b-instruct-v1:0"}, ["toolSpec", "text", "text"]),
        ({"cache": PromptCache("1h")}, ["toolSpec", "1h", "text", "1h", "text", "1h"]),
        ({"cache": PromptCache("1h"), "model": NOVA}, ["toolSpec", "text", "point", "text", "point"]),
        (
            {"cache": PromptCache("1h"), "model": MINUTES_ONLY},
            ["toolSpec", "point", "text", "point", "text", "point"],
        ),
        ({"cache": PromptCache(implicit=False)}, ["toolSpec", "text", "text"]),
        (
            {"messages": (UserInput("Hi"), AssistantAnswer("So"))},
            ["toolSpec", "point", "text", "point", "text", "point"],
        ),
    ],
)
async def test_a_request_has_the_checkpoints_that_its_model_accepts(
    model: Bedrock, server: ConverseStreamServer, fields: dict[str, Any], expected: list[str]
) -> None:
    assert await sent(model, server, replace(ASKED, **fields)) == expected


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (PromptCache(implicit=False), ["toolSpec", "text", "text", "image", "point", "text"]),
        (PromptCache(), ["toolSpec", "point", "text", "point", "text", "image", "point", "text", "point"]),
    ],
)
async def test_a_caller_may_name_the_ends_of_what_is_kept(
    model: Bedrock, server: ConverseStreamServer, cache: PromptCache, expected: list[str]
) -> None:
    content: list[ContentItem] = [TextContentItem(text="Look:"), PNG, TextContentItem(text="What is it?")]
    asked = replace(ASKED, messages=(SystemText("Be kind."), UserInput(content, breakpoints=(1,))), cache=cache)

    assert await sent(model, server, asked) == expected


async def test_the_provider_says_what_a_request_without_messages_lacks(
    model: Bedrock, server: ConverseStreamServer
) -> None:
    server.script(converse.error(400, "ValidationException", "A conversation must start with a user message."))

    with pytest.raises(InvalidRequest, match="must start with a user message"):
        await collect(model.stream(replace(ASKED, messages=(SystemText("Be kind."),))))


async def test_a_request_has_at_most_four_checkpoints(model: Bedrock, server: ConverseStreamServer) -> None:
    content: list[ContentItem] = [TextContentItem(text=f"Part {number}") for number in range(6)]
    marked = UserInput(content, breakpoints=tuple(range(6)))

    both = await sent(model, server, replace(ASKED, messages=(SystemText("Be kind."), marked)))
    named = await sent(model, server, replace(ASKED, messages=(marked,), cache=PromptCache(implicit=False)))

    assert both == ["toolSpec", "text", "text", "text", *("text", "point") * 4]
    assert named == ["toolSpec", "text", "text", *("text", "point") * 4]


@pytest.mark.parametrize(
    ("said", "code", "expected"),
    [
        (
            "Malformed input request: #/toolConfig/tools/1: extraneous key [cachePoint] is not permitted",
            "ValidationException",
            ["toolSpec", "text", "1h", "text", "1h"],
        ),
        (
            "Extended TTL prompt caching is only supported for Anthropic models",
            "ValidationException",
            ["toolSpec", "point", "text", "point", "text", "point"],
        ),
        (
            "Malformed input request: #/system/1/cachePoint: this TTL is not supported",
            "ValidationException",
            ["toolSpec", "1h", "text", "point", "text", "point"],
        ),
        (
            "You invoked an unsupported model or your request did not allow prompt caching. See the documentation.",
            "AccessDeniedException",
            ["toolSpec", "text", "text"],
        ),
    ],
)
async def test_what_a_model_refuses_is_left_out_without_failing_the_call(
    model: Bedrock, server: ConverseStreamServer, said: str, code: str, expected: list[str]
) -> None:
    server.script(converse.error(400, code, said))
    asked = replace(ASKED, cache=PromptCache("1h"))

    assert await sent(model, server, asked) == expected
    assert await sent(model, server, asked) == expected
    assert len(server.bodies) == 3


async def test_the_refusal_of_one_model_does_not_concern_another(model: Bedrock, server: ConverseStreamServer) -> None:
    server.script(converse.error(400, "ValidationException", "your request did not allow prompt caching"))
    await collect(model.stream(ASKED))

    assert "point" in await sent(model, server, replace(ASKED, model="anthropic.claude-opus-4-6-v1"))


async def test_an_error_about_something_else_fails_the_call(model: Bedrock, server: ConverseStreamServer) -> None:
    server.script(converse.error(400, "ValidationException", "The value at system.0 is too long"))

    with pytest.raises(InvalidRequest, match="too long"):
        await collect(model.stream(ASKED))

    assert len(server.bodies) == 1


@pytest.mark.parametrize("calls_at_once", [1, 3])
async def test_a_request_begins_with_the_blocks_of_the_one_before(
    model: Bedrock, server: ConverseStreamServer, calls_at_once: int
) -> None:
    messages: list[ModelMessage] = [SystemText("Be kind.")]
    for turn in range(3):
        call_ids = [f"c{turn}-{number}" for number in range(calls_at_once)]
        messages.append(UserInput(f"Turn {turn}"))
        await collect(model.stream(replace(ASKED, messages=tuple(messages))))
        messages += [called(*call_ids), *(ToolResult(each, "add", "1") for each in call_ids)]
        await collect(model.stream(replace(ASKED, messages=tuple(messages))))
        messages.append(AssistantAnswer("done"))

    blocks = [blocks_of(body) for body in server.bodies]
    for earlier, later in itertools.pairwise(blocks):
        assert later[: len(earlier)] == earlier


def blocks_of(body: dict[str, Any]) -> list[str]:
    """Return the blocks of a request without its checkpoints."""
    blocks = [*body["toolConfig"]["tools"], *body["system"]]
    blocks += [{message["role"]: block} for message in body["messages"] for block in message["content"]]
    return [text for text in map(json.dumps, blocks) if "cachePoint" not in text]
