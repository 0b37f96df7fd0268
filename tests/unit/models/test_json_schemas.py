from typing import Any

import pytest

from stint.domain.errors import InvalidRequest
from stint.domain.inference import GrammarResponseFormat, JsonSchemaResponseFormat
from stint.models.json_schemas import NamedSchema, close_objects, is_strict, read_schema

OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT: dict[str, Any] = {**OPEN, "required": ["a"], "additionalProperties": False}


def test_a_bare_schema_gets_a_name() -> None:
    bare = read_schema(JsonSchemaResponseFormat(json_schema=OPEN))
    titled = read_schema(JsonSchemaResponseFormat(json_schema={**OPEN, "title": "My answer!"}))

    assert bare == NamedSchema("response", OPEN, strict=False)
    assert titled.name == "My_answer"


def test_a_named_schema_is_unwrapped() -> None:
    wrapped = {"name": "answer", "schema": STRICT, "strict": False}
    told = read_schema(JsonSchemaResponseFormat(json_schema=wrapped | {"description": "What for."}))

    assert read_schema(JsonSchemaResponseFormat(json_schema=wrapped)) == NamedSchema("answer", STRICT, strict=False)
    assert told == NamedSchema("answer", STRICT, strict=False, description="What for.")


def test_a_schema_with_a_property_called_schema_is_not_unwrapped() -> None:
    schema = {"type": "object", "properties": {"schema": {"type": "string"}}}

    assert read_schema(JsonSchemaResponseFormat(json_schema=schema)).schema == schema


def test_a_grammar_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="grammar") as caught:
        read_schema(GrammarResponseFormat(bnf={}))

    assert caught.value.param == "response_format"


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (STRICT, True),
        (OPEN, False),
        ({**STRICT, "required": []}, False),
        ({**STRICT, "properties": {"a": {"type": "array", "items": STRICT}}}, True),
        ({**STRICT, "properties": {"a": {"type": "array", "items": OPEN}}}, False),
        ({**STRICT, "properties": {"a": {"anyOf": [STRICT, OPEN]}}}, False),
        ({**STRICT, "$defs": {"part": OPEN}}, False),
        ({"type": "string", "enum": ["properties"]}, True),
        ({**STRICT, "properties": {"enum": OPEN}, "required": ["enum"]}, False),
        ({"type": "object", "properties": [], "additionalProperties": False}, True),
        ({**STRICT, "required": 7}, False),
    ],
)
def test_strict_is_what_openai_would_take(schema: dict[str, Any], strict: bool) -> None:
    assert is_strict(schema) is strict


def test_objects_are_closed_at_every_depth_and_open_ones_stay_open() -> None:
    schema = {
        "type": "object",
        "properties": {"const": OPEN, "parts": {"type": "array", "items": OPEN}},
        "$defs": {"free": {"type": "object"}, "open": {**OPEN, "additionalProperties": True}},
        "examples": [{"properties": {}}],
    }

    closed = close_objects(schema)

    assert closed["additionalProperties"] is False
    assert closed["properties"]["const"]["additionalProperties"] is False
    assert closed["properties"]["parts"]["items"] == {**OPEN, "additionalProperties": False}
    assert closed["$defs"] == schema["$defs"]
    assert closed["examples"] == schema["examples"]
    assert "additionalProperties" not in schema
