from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from stint.domain.openai.response_tools import (
    REFUSED_TOOLS,
    WEB_SEARCH_TYPES,
    McpTool,
    ResponseTool,
    without_credentials,
)

TOOL: TypeAdapter[ResponseTool] = TypeAdapter(ResponseTool)
MCP: dict[str, Any] = {"type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example.org"}

FILES = {"type": "file_search", "vector_store_ids": ["vs_1"]}
WEIGHTLESS = {"embedding_weight": 0, "text_weight": 0}


def nested(depth: int) -> dict[str, Any]:
    """Return a filter of this depth."""
    inner: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    for _ in range(depth):
        inner = {"type": "and", "filters": [inner]}
    return inner


def mcp(**fields: Any) -> McpTool:
    return McpTool.model_validate(MCP | fields)


def test_a_function_is_shown_with_every_key() -> None:
    tool = TOOL.validate_python({"type": "function", "name": "f", "async": False, "allowed_callers": ["direct"]})

    assert TOOL.dump_python(tool, mode="json") == {
        "type": "function",
        "name": "f",
        "description": None,
        "parameters": None,
        "strict": None,
    }


@pytest.mark.parametrize("kind", WEB_SEARCH_TYPES)
def test_a_web_search_is_taken_by_each_of_its_names(kind: str) -> None:
    tool = TOOL.validate_python({"type": kind, "external_web_access": True, "filters": None})

    assert TOOL.dump_python(tool, mode="json") == {"type": kind, "search_context_size": "medium"}


@pytest.mark.parametrize("kind", sorted(REFUSED_TOOLS))
def test_a_tool_that_is_not_offered_is_refused_by_its_type(kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TOOL.validate_python({"type": kind})

    assert caught.value.errors()[0]["msg"] == f"The tool type {kind!r} is not supported: {REFUSED_TOOLS[kind]}."


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ({"type": "function", "name": "a b"}, "function.name"),
        ({"type": "function", "name": "a" * 65}, "function.name"),
        ({"type": "function", "name": "f", "defer_loading": True}, "function.defer_loading"),
        ({"type": "function", "name": "f", "async": True}, "function.async"),
        ({"type": "function", "name": "f", "allowed_callers": ["programmatic"]}, "function.allowed_callers"),
        ({"type": "function", "name": "f", "output_schema": {}}, "function.output_schema"),
        (MCP | {"connector_id": "connector_gmail"}, "mcp.connector_id"),
        (MCP | {"tunnel_id": "t"}, "mcp.tunnel_id"),
        (MCP | {"server_url": "ftp://a"}, "mcp.server_url"),
        (MCP | {"server_url": None}, "mcp.server_url"),
        (MCP | {"defer_loading": True}, "mcp.defer_loading"),
        (MCP | {"allowed_tools": {"read_only": True}}, "mcp.allowed_tools.filter.read_only"),
        (MCP | {"require_approval": "sometimes"}, "mcp.require_approval.mode"),
        ({"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}, "web_search.filters"),
        ({"type": "web_search", "user_location": {"type": "approximate"}}, "web_search.user_location"),
        ({"type": "web_search", "external_web_access": False}, "web_search.external_web_access"),
        ({"type": "web_search_preview", "search_content_types": ["image"]}, "web_search_preview.search_content_types"),
        ({"type": "web_search", "search_context_size": "huge"}, "web_search.search_context_size"),
        ({"type": "file_search"}, "file_search.vector_store_ids"),
        (FILES | {"vector_store_ids": []}, "file_search.vector_store_ids"),
        (FILES | {"vector_store_ids": ["vs_1"] * 21}, "file_search.vector_store_ids"),
        (FILES | {"max_num_results": 0}, "file_search.max_num_results"),
        (FILES | {"max_num_results": 51}, "file_search.max_num_results"),
        (FILES | {"filters": {"type": "eq", "key": "a"}}, "file_search.filters.comparison.value"),
        (FILES | {"filters": nested(50)}, "file_search.filters"),
        (FILES | {"ranking_options": {"ranker": "best"}}, "file_search.ranking_options.ranker"),
        (FILES | {"ranking_options": {"score_threshold": 1.1}}, "file_search.ranking_options.score_threshold"),
        (FILES | {"ranking_options": {"hybrid_search": WEIGHTLESS}}, "file_search.ranking_options.hybrid_search"),
    ],
)
def test_a_setting_of_a_tool_that_is_not_offered_is_refused_by_its_name(tool: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TOOL.validate_python(tool)

    assert ".".join(str(each) for each in caught.value.errors()[0]["loc"]) == field


def test_credentials_are_neither_stored_nor_shown() -> None:
    tool = mcp(headers={"x-key": "secret"}, authorization="secret")

    [shown] = [TOOL.dump_python(each, mode="json") for each in without_credentials([tool])]

    assert tool.carries_credentials
    assert "secret" not in str(shown)
    assert not {"headers", "authorization"} & set(shown)


@pytest.mark.parametrize(
    ("allowed", "name", "expected"),
    [
        (None, "ask", True),
        (["ask"], "ask", True),
        (["ask"], "write", False),
        ([], "ask", False),
        ({"tool_names": ["ask"]}, "ask", True),
        ({"tool_names": ["ask"]}, "write", False),
        ({}, "ask", True),
    ],
)
def test_the_allowed_tools_are_named_or_filtered(allowed: Any, name: str, expected: bool) -> None:
    assert mcp(allowed_tools=allowed).allows(name) is expected


@pytest.mark.parametrize(
    ("approval", "name", "expected"),
    [
        (None, "ask", True),
        ("always", "ask", True),
        ("never", "ask", False),
        ({"never": {"tool_names": ["ask"]}}, "ask", False),
        ({"never": {"tool_names": ["ask"]}}, "write", True),
        ({"always": {"tool_names": ["write"]}}, "write", True),
        ({"always": {"tool_names": ["write"]}}, "ask", False),
        ({"always": {"tool_names": ["write"]}, "never": {"tool_names": ["ask"]}}, "ask", False),
        ({"always": {"tool_names": ["write"]}, "never": {"tool_names": ["ask"]}}, "other", True),
        ({"always": {"tool_names": ["ask"]}, "never": {"tool_names": ["ask"]}}, "ask", True),
        ({}, "ask", True),
    ],
)
def test_a_call_waits_for_consent_unless_it_is_exempt(approval: Any, name: str, expected: bool) -> None:
    assert mcp(require_approval=approval).needs_approval(name) is expected
