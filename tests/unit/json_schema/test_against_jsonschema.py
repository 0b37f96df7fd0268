"""A value passes where the library `jsonschema` passes it."""

from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stint.json_schema.document import SchemaDocument
from stint.json_schema.evaluation import find_mismatches
from stint.regex.budget import Budget

NAMES = st.sampled_from(["a", "b", "ab"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.0, 1e300, 10**30])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a", "b", "ab", "1"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
COUNTS = st.integers(0, 2)
TYPES = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
PATTERNS = st.sampled_from(["a", "^b$", "^(a|b)*$", r"\d"])
LEAVES = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
    "enum": st.lists(VALUES, max_size=3),
    "const": VALUES,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), COUNTS),
    "pattern": PATTERNS,
    "uniqueItems": st.booleans(),
    "required": st.lists(NAMES, max_size=2, unique=True),
    "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
    "minContains": COUNTS,
    "maxContains": COUNTS,
    "$ref": st.just("#/$defs/leaf"),
}


def extend(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=2)
    nested = {
        **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
        **dict.fromkeys(("not", "if", "then", "else", "items", "contains", "additionalProperties"), inner),
        **dict.fromkeys(("propertyNames", "unevaluatedItems", "unevaluatedProperties"), inner),
        **dict.fromkeys(("properties", "dependentSchemas"), named),
        "patternProperties": st.dictionaries(PATTERNS, inner, max_size=2),
    }
    keywords = LEAVES | nested
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


LEAF = st.fixed_dictionaries({"type": TYPES})
SCHEMAS = st.recursive(st.booleans() | LEAF, extend, max_leaves=6).map(lambda schema: {"allOf": [schema]})

LEFT_OUT_IN_BRANCHES = {
    "anyOf": [{"properties": {"a": True}}, {"properties": {"b": True}}],
    "if": {"properties": {"ab": {"const": 1}}, "required": ["ab"]},
    "unevaluatedProperties": False,
}


@given(SCHEMAS, LEAF, st.lists(VALUES, min_size=1, max_size=5))
@example(LEFT_OUT_IN_BRANCHES, {}, [{"a": 1, "b": 2}, {"ab": 1}, {"ab": 2}, {"a": 1, "ab": 1}])
@example({"prefixItems": [{}], "contains": {"type": "string"}, "unevaluatedItems": False}, {}, [[1, "a"], [1, 2]])
@example({"uniqueItems": True}, {}, [[1, True], [1, 1.0], [[1], [True]], [{"a": 1, "b": 2}, {"b": 2, "a": 1.0}]])
def test_a_value_is_valid_where_jsonschema_says_so(schema: Any, leaf: Any, values: list[Any]) -> None:
    schema = {**schema, "$defs": {"leaf": leaf}}
    expected = jsonschema.Draft202012Validator(schema)

    document = SchemaDocument(schema)

    for value in values:
        mismatches = find_mismatches(document, value, Budget(1_000_000))
        assert (mismatches == []) is expected.is_valid(value), value


@pytest.mark.parametrize("uri", ["http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema"])
@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"items": [{"type": "string"}], "additionalItems": {"type": "null"}}, [["a"], [1], ["a", None], ["a", 1]]),
        ({"items": [{}, {}], "additionalItems": False}, [[1, 2], [1, 2, 3], []]),
        ({"dependencies": {"a": ["b"], "b": {"minProperties": 2}}}, [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}, 5]),
        ({"properties": {"a": {"$ref": "#/definitions/x", "minimum": 5}}, "definitions": {"x": {}}}, [{"a": 1}]),
        ({"minContains": 2, "unevaluatedItems": False, "type": "array"}, [[1], []]),
        ({"type": "integer"}, [1, 1.0, 1.5, True]),
    ],
)
def test_earlier_versions_have_their_own_meanings(uri: str, schema: dict[str, Any], values: list[Any]) -> None:
    schema = {"$schema": uri, **schema}
    expected: Any = jsonschema.validators.validator_for(schema)(schema)

    document = SchemaDocument(schema)

    for value in values:
        assert (find_mismatches(document, value, Budget(10_000)) == []) is expected.is_valid(value), value


def test_limits_of_draft_4_are_flags_beside_others() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}

    document = SchemaDocument(schema)

    assert [bool(find_mismatches(document, value, Budget(1_000))) for value in (1, 2)] == [True, False]


def test_parts_with_an_id_of_their_own_are_referred_to_by_it() -> None:
    schema = {
        "$id": "https://example.com/root.json",
        "$ref": "tree.json",
        "$dynamicAnchor": "node",
        "properties": {"own": {"type": "string"}},
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree.json",
                "$dynamicAnchor": "node",
                "properties": {"children": {"items": {"$dynamicRef": "#node"}}},
            }
        },
    }
    document = SchemaDocument(schema)

    assert find_mismatches(document, {"children": [{"own": "a", "children": []}]}, Budget(1_000)) == []
    assert find_mismatches(document, {"children": [{"own": 5}]}, Budget(1_000))[0].keyword == "type"
    assert find_mismatches(document, {"children": [{"more": 5}]}, Budget(1_000))[0].keyword == "unevaluatedProperties"


def test_decimal_fractions_are_multiples_as_they_are_written() -> None:
    document = SchemaDocument({"multipleOf": 0.01})

    assert [bool(find_mismatches(document, value, Budget(1_000))) for value in (19.99, 0.3, 1e300, 0.005)] == [
        False,
        False,
        False,
        True,
    ]
