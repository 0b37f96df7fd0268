"""The arguments that a model may set."""

from typing import Any

import pytest

from stint.domain.content import text_of
from stint.domain.inference import ToolSignature
from stint.loop.undeclared_arguments import find_undeclared, note_undeclared, refuse_undeclared
from stint.tools.port import ToolOutcome

MCP, LAMBDA, HTTP = "model-context-protocol", "lambda-function", "remote-execution"
DECLARED: dict[str, Any] = {"type": "object", "properties": {"q": {}}}
CLOSED = DECLARED | {"additionalProperties": False}
PATTERNS = CLOSED | {"patternProperties": {"^x-": {}}}


def undeclared(provider_id: str, schema: dict[str, Any], *names: str) -> list[str]:
    return find_undeclared(ToolSignature("t", "", schema), provider_id, names)


@pytest.mark.parametrize("provider_id", ["rag-runtime", "tavily-search", "code-interpreter", "any-other"])
def test_a_built_in_tool_has_its_properties_only(provider_id: str) -> None:
    assert undeclared(provider_id, DECLARED, "q", "vector_db_ids", "a") == ["vector_db_ids", "a"]
    assert undeclared(provider_id, {"type": "object"}, "a") == ["a"]
    assert undeclared(provider_id, DECLARED, "q") == []


def test_an_endpoint_without_properties_has_any_arguments() -> None:
    assert undeclared(HTTP, DECLARED, "q", "a") == ["a"]
    assert undeclared(HTTP, {"type": "object"}, "a") == []
    assert undeclared(HTTP, {"type": "object", "properties": {}}, "a") == []
    assert undeclared(HTTP, {"type": "object", "additionalProperties": False}, "a") == ["a"]
    assert undeclared(HTTP, DECLARED | {"additionalProperties": True}, "a") == []
    assert undeclared(HTTP, {"type": "object", "allOf": [DECLARED]}, "q", "a") == ["a"]


@pytest.mark.parametrize("provider_id", [MCP, LAMBDA])
@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        (DECLARED, []),
        (DECLARED | {"additionalProperties": {"type": "string"}}, []),
        (CLOSED, ["a", "x-a"]),
        (PATTERNS, ["a"]),
        (DECLARED | {"unevaluatedProperties": False}, ["a", "x-a"]),
        (DECLARED | {"unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]}, []),
        ({"properties": {"q": {}, "a": False}}, []),
        (CLOSED | {"properties": {"q": {}, "a": False}}, ["a", "x-a"]),
        ({"properties": [], "additionalProperties": False}, ["q", "a", "x-a"]),
        (CLOSED | {"patternProperties": {"(": {}}}, ["a", "x-a"]),
        (CLOSED | {"patternProperties": ["x"]}, ["a", "x-a"]),
    ],
)
def test_tools_of_servers_and_functions_have_what_their_schema_permits(
    provider_id: str, schema: dict[str, Any], refused: list[str]
) -> None:
    assert undeclared(provider_id, schema, "q", "a", "x-a") == refused


def test_a_pattern_cannot_stall_the_comparison() -> None:
    schema = CLOSED | {"patternProperties": {"^(a+)+$": {}}}

    assert undeclared(MCP, schema, "a" * 100_000 + "!") == ["a" * 100_000 + "!"]


@pytest.mark.parametrize("provider_id", [MCP, LAMBDA, HTTP])
def test_a_call_of_a_tool_that_is_not_built_in_does_not_run(provider_id: str) -> None:
    tool = ToolSignature("t", "", DECLARED)

    message = refuse_undeclared(tool, provider_id, ["x" * 100_000] * 1_000) or ""

    assert len(message) < 1_000
    assert "Its arguments are: q." in message
    assert refuse_undeclared(tool, provider_id, []) is None
    assert refuse_undeclared(tool, "rag-runtime", ["a"]) is None


def test_a_built_in_tool_says_what_had_no_effect() -> None:
    noted = note_undeclared(ToolOutcome("found", {"a": 1}, error=True), ToolSignature("t", "", DECLARED), ["a"])

    assert text_of(noted.content) == "found\n[These arguments had no effect: 'a'. Its arguments are: q.]"
    assert (noted.metadata, noted.error) == ({"a": 1}, True)
