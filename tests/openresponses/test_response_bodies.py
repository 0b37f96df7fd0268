"""The checks of bodies let good ones pass, and notice what a client would stumble on."""

from typing import Any

import pytest
from tests.openresponses.bodies import (
    check_compaction,
    check_conversation,
    check_deleted_response,
    check_error,
    check_item,
    check_item_list,
    check_response,
)
from tests.openresponses.samples import CALL, MCP, MESSAGE, OUTPUT, TEXT, USAGE, response
from tests.openresponses.schema import Json, Mismatch

ANSWER = {"type": "function_call_output", "id": "a", "call_id": "b", "output": "", "status": "completed"}
SCHEMA = {"type": "json_schema", "name": "n", "description": None, "schema": {"type": "object"}, "strict": True}


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"status": "in_progress", "output": []},
        {"status": "failed", "output": [CALL]},
        {"status": "incomplete", "output": [MESSAGE | {"status": "incomplete"}]},
        {"output": OUTPUT, "tools": [MCP, {"type": "web_search"}]},
        {"text": {"format": SCHEMA}},
        {"reasoning": {"effort": "high", "summary": None}},
        {"reasoning": {"effort": "minimal", "summary": "auto"}},
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}},
        {"tool_choice": {"type": "mcp", "server_label": "deepwiki"}},
        {"conversation": {"id": "conv_1"}, "user": None},
    ],
)
def test_a_good_response_passes(other: dict[str, Any]) -> None:
    check_response(response(**other))


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"status": "done"}, "status"),
        ({"completed_at": None}, "completed_at"),
        ({"usage": None}, "no usage"),
        ({"created_at": 1.5}, "created_at"),
        ({"instructions": ["x"]}, "instructions"),
        ({"text": {"format": {"type": "text"}, "verbosity": None}}, "verbosity"),
        ({"reasoning": {}}, "reasoning"),
        ({"reasoning": {"effort": "utmost", "summary": None}}, "reasoning"),
        ({"tools": [{"type": "function", "name": "f"}]}, "tools"),
        ({"tools": [MCP | {"headers": {"a": "b"}}]}, "tools"),
        ({"tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice"),
        ({"output": [MESSAGE | {"phase": None}]}, "phase"),
        ({"output": [MESSAGE | {"content": [TEXT | {"logprobs": None}]}]}, "content"),
        ({"output": [MESSAGE | {"content": [{"type": "output_text", "text": "x"}]}]}, "annotations|content"),
        ({"output": [MESSAGE | {"id": ""}]}, "no id"),
        ({"output": [MESSAGE, MESSAGE]}, "more than once"),
        ({"output": [MESSAGE | {"status": "in_progress"}]}, "in progress"),
        ({"output": OUTPUT}, "which no tool"),
        ({"output": [{"type": "acme:x", "id": "a", "status": "completed"}]}, "acme:x"),
        (
            {
                "output": [
                    {"type": "function_call_output", "id": "a", "call_id": "b", "output": "", "status": "completed"}
                ]
            },
            "function_call_output",
        ),
        ({"status": "failed", "error": {"code": "x", "message": "x"}}, "type"),
    ],
)
def test_a_fault_in_a_response_is_noticed(other: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Mismatch, match=complaint):
        check_response(response(**other))


@pytest.mark.parametrize("key", sorted(response()))
def test_a_response_has_every_key(key: str) -> None:
    body = response()
    del body[key]

    with pytest.raises(Mismatch, match=key):
        check_response(body)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "id": "a", "status": "completed", "role": "developer", "content": []},
        MESSAGE | {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ANSWER,
        {"type": "mcp_approval_response", "id": "a", "approval_request_id": "b", "approve": True, "reason": None},
        {"type": "mcp_approval_request", "id": "a", "server_label": "b", "name": "c", "arguments": "{}"},
        {"type": "compaction", "id": "a", "encrypted_content": "b"},
    ],
)
def test_items_of_an_input_pass(item: Json) -> None:
    check_item(item)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_call", "id": "a", "server_label": "b", "name": "c"},
        {"type": "web_search_call", "id": "a", "action": {"type": "search"}},
        {"type": "reasoning", "id": "a", "summary": [], "encrypted_content": None},
        {"type": "reasoning", "id": "a"},
    ],
)
def test_half_an_item_is_noticed(item: Json) -> None:
    with pytest.raises(Mismatch, match=item["type"] if item["type"] != "reasoning" else "Reasoning"):
        check_item(item)


def test_lists_have_cursors() -> None:
    page = {"object": "list", "data": [MESSAGE, CALL], "first_id": "msg_1", "last_id": "fc_1", "has_more": False}

    check_item_list(page)
    check_item_list({"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False})
    with pytest.raises(Mismatch, match="last_id"):
        check_item_list(page | {"last_id": "msg_1"})
    with pytest.raises(Mismatch, match="more than once"):
        check_item_list(page | {"data": [MESSAGE, MESSAGE]})


def test_other_bodies_are_held_to_their_shapes() -> None:
    compaction = {"id": "a", "object": "response.compaction", "created_at": 1, "usage": USAGE}
    output = [{"type": "compaction", "id": "a", "encrypted_content": "b"}]

    check_compaction(compaction | {"output": output})
    check_conversation({"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": {}})
    check_deleted_response({"id": "resp_1", "object": "response", "deleted": True})
    check_error({"error": {"message": "No.", "type": "not_found", "code": "not_found", "param": None}})
    with pytest.raises(Mismatch, match="compaction item"):
        check_compaction(compaction | {"output": []})
    with pytest.raises(Mismatch, match="metadata"):
        check_conversation({"id": "conv_1", "object": "conversation", "created_at": 1})
    with pytest.raises(Mismatch, match="deletion"):
        check_deleted_response({"id": "resp_1", "object": "response"})
    with pytest.raises(Mismatch, match="code"):
        check_error({"error": {"message": "No.", "type": "not_found", "code": None, "param": None}})
