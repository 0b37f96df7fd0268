"""Refused requests for responses. Each is a 400 that names the location."""

from typing import Any

import httpx
import pytest
from tests.api.responses_client import RESPONSES, TIME, UNKNOWN, WEATHER, assert_refused, post, respond, text_of, user

TEXT = {"type": "input_text", "text": "Hello"}
MCP = {"type": "mcp", "server_label": "s", "server_url": "https://example.com"}
FILE = {"type": "input_file", "filename": "a.xyz", "file_data": "AAAA"}


def places() -> list[Any]:
    """Fields of a request that are wrong or not offered, and where the refusal says so."""
    return [
        ({"input": 5}, "input"),
        ({"input": [user("Hello"), {"type": "computer_call", "id": "c"}]}, "input[1]"),
        ({"input": [user([TEXT, {"type": "input_text", "text": 5}])]}, "input[0].content[1].text"),
        (
            {"input": [user([{"type": "input_image", "image_url": "data:image/png;base64,x"}])]},
            "input[0].content[0].image_url",
        ),
        ({"input": [user([TEXT, FILE])]}, "input[0].content[1]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0]"),
        ({"input": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, "input[0].encrypted_content"),
        ({"input": [{"type": "compaction", "encrypted_content": "st1.AAAA"}]}, "input[0].encrypted_content"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id"),
        ({"model": "nobody/nothing"}, "model"),
        ({"instructions": ["a list"]}, "instructions"),
        ({"previous_response_id": UNKNOWN}, "previous_response_id"),
        ({"previous_response_id": "nonsense"}, "previous_response_id"),
        ({"conversation": {"id": ""}}, "conversation.id"),
        ({"top_p": -0.1}, "top_p"),
        ({"frequency_penalty": "much"}, "frequency_penalty"),
        ({"include": ["message.output_text.logprobs"]}, "include[0]"),
        ({"metadata": {"key": "x" * 513}}, "metadata.key"),
        ({"stream_options": {"include_usage": True}}, "stream_options.include_usage"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
        ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}, "text.format.name"),
        ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": 5}}}}, "text.format.schema"),
        ({"tools": [WEATHER, {"type": "file_search", "vector_store_ids": []}]}, "tools[1].vector_store_ids"),
        ({"tools": [WEATHER, {"type": "code_interpreter"}]}, "tools[1].container"),
        ({"tools": [MCP, MCP]}, "tools"),
        ({"tools": [MCP | {"require_approval": "sometimes"}]}, "tools[0].require_approval"),
        ({"tools": [MCP | {"allowed_tools": {"read_only": True}}]}, "tools[0].allowed_tools.read_only"),
        ({"tools": [TIME], "tool_choice": {"type": "function", "name": "get_weather"}}, "tool_choice"),
        ({"tools": [TIME], "tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.tools"),
        ({"store": False, "conversation": "conv_" + "0" * 32}, "store"),
    ]


@pytest.mark.parametrize(("fields", "param"), places())
def test_what_cannot_be_done_is_refused_by_its_place(http: httpx.Client, fields: Any, param: str) -> None:
    for stream in (False, True):
        answer = post(http, **({"stream": stream} | fields))

        error = assert_refused(answer, 400, answer.json()["error"]["code"])
        assert (error["param"], error["type"]) == (param, "invalid_request_error")
        assert len(error["message"]) > len(param)
    assert http.get(RESPONSES).json()["data"] == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
            "tools[0].name is missing; Responses has name and parameters beside type, not below function",
        ),
        (
            {"tools": [TIME, {"type": "function", "function": {}}]},
            "tools[1].name is missing; Responses has name and parameters beside type, not below function",
        ),
        (
            {"tools": [TIME], "tool_choice": {"type": "function", "function": {"name": "get_time"}}},
            "tool_choice.name is missing; Responses has name beside type, not below function",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].name: Field required"),
    ],
)
def test_a_tool_in_the_form_of_chat_completions_is_told_the_form_of_responses(
    http: httpx.Client, fields: Any, message: str
) -> None:
    refused = assert_refused(post(http, **fields), 400, "invalid_request")

    assert refused["message"] == message
    assert refused["param"] == message.split(" ")[0].rstrip(":")


def test_a_field_that_nobody_documents_is_ignored(http: httpx.Client) -> None:
    assert text_of(respond(http, "say: Hi", seed=5, nonsense={"a": 1})) == "Hi"


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/compact", {"input": "Hello"}, "model"),
        ("/compact", {"model": "scripted/demo"}, "input"),
        ("/compact", {"model": "scripted/demo", "input": "Hello", "image": {}}, "image"),
        ("/compact", {"model": "nobody/nothing", "input": "Hello"}, "model"),
        ("/compact", {"model": "scripted/demo", "previous_response_id": UNKNOWN}, "previous_response_id"),
        ("/input_tokens", {"input": "Hello", "personality": "friendly"}, "personality"),
        ("/input_tokens", {"input": [user("Hello"), {"type": "program"}]}, "input[1]"),
        ("/input_tokens", {"input": "Hello", "model": "nobody/nothing"}, "model"),
    ],
)
def test_other_operations_name_the_place_too(http: httpx.Client, path: str, fields: Any, param: str) -> None:
    answer = http.post(RESPONSES + path, json=fields)

    assert assert_refused(answer, 400, answer.json()["error"]["code"])["param"] == param


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?limit=-2", "limit"),
        ("?order=up", "order"),
        ("/{}/input_items?limit=none", "limit"),
        ("/{}/input_items?include[]=everything", "include"),
        ("/{}?include=message.output_text.logprobs", "include"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused(http: httpx.Client, query: str, param: str) -> None:
    answer = http.get(RESPONSES + query.format(UNKNOWN))

    assert assert_refused(answer, 400, "invalid_request")["param"] == param
