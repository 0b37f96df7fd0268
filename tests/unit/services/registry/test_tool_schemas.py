from typing import Any

import pytest

from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.registrations import ToolGroup
from stint.services.registry.tool_schemas import describe, parameters_of


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, [("a", "integer", True)]),
        ({"properties": {"a": {"anyOf": [{"type": "null"}, {"type": "string"}]}}}, [("a", "string", False)]),
        ({"properties": {"a": {"type": ["null", "number"]}}}, [("a", "number", False)]),
        (
            {"properties": {"a": True, "b": {"anyOf": 5}, "c": {"type": {}}}},
            [(name, "object", False) for name in "abc"],
        ),
        ({"properties": {"a": {}}, "required": "a"}, [("a", "object", False)]),
        ({"properties": {"a": {}}, "required": [{}, "a"]}, [("a", "object", True)]),
        ({"properties": [], "required": 5}, []),
        ({}, []),
    ],
)
def test_a_schema_of_any_form_shows_as_parameters(schema: dict[str, Any], shown: list[tuple[str, str, bool]]) -> None:
    found = parameters_of(ToolSignature("tool", "", schema))

    assert [(each.name, each.parameter_type, each.required) for each in found] == shown


def test_a_listed_tool_has_its_whole_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"enum": [1, 2]}}}}}
    group = ToolGroup(identifier="group", provider_resource_id="group", provider_id="lambda-function")

    (tool,) = describe(group, [ToolSignature("tool", "", schema)])

    assert tool.input_schema == schema
