from typing import Any

import pytest

from stint.tools.declared_properties import MOST_SUBSCHEMAS, declared_properties


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({}, []),
        ({"properties": {"a": {}, "b": False}}, ["a"]),
        ({"allOf": [{"properties": {"a": {}}}, {"anyOf": [{"properties": {"b": {}}}]}]}, ["a", "b"]),
        ({"oneOf": [{"properties": {"a": {}}}, True, 5]}, ["a"]),
        ({"if": {}, "then": {"properties": {"a": {}}}, "else": {"properties": {"b": {}}}}, ["a", "b"]),
        ({"dependentSchemas": {"x": {"properties": {"a": {}}}}}, ["a"]),
        ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"properties": {"a": {}}}}}, ["a"]),
        ({"$ref": "#", "properties": {"a": {}}}, ["a"]),
        ({"$ref": "https://x.example/#/$defs/x", "$defs": {"x": {"properties": {"a": {}}}}}, []),
        ({"$ref": 5, "allOf": {}, "properties": [], "dependentSchemas": 7}, []),
        ({"not": {"properties": {"a": {}}}, "properties": {"o": {"properties": {"b": {}}}}}, ["o"]),
    ],
)
def test_properties_are_declared_by_the_schemas_that_a_schema_is_composed_of(
    schema: dict[str, Any], names: list[str]
) -> None:
    assert sorted(declared_properties(schema)) == names


def test_a_schema_of_many_parts_is_not_read_to_its_end() -> None:
    parts: list[Any] = [{"properties": {f"p{number}": {}}} for number in range(2 * MOST_SUBSCHEMAS)]

    assert len(declared_properties({"allOf": parts})) < MOST_SUBSCHEMAS + 1


def test_references_to_each_other_are_read_once() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}

    assert declared_properties(schema) == {}
