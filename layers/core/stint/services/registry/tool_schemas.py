"""Conversion between Llama Stack's lists of parameters and JSON schemas for the model.

Llama Stack describes parameters as a flat list with names of Python's types; models need JSON Schema. Client tools come
as such lists, and become schemas (`signature_of`). Tools of servers have schemas, which the tools API has as they are
and as lists (`parameters_of`), which lose what is nested.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.registrations import Tool, ToolGroup
from stint.domain.tools import ToolDef, ToolParameter
from stint.services.registry.masking import masked_endpoint
from stint.tools.outcomes import write_json
from stint.tools.port import MCP

FUNCTION_DEFINITIONS = "{{function_definitions}}"
"""The placeholder of the tool definitions in instructions (Llama Stack, SystemMessageBehavior)."""

JSON_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "dict": "object",
    "none": "null",
    "nonetype": "null",
}


def signature_of(tool: ToolDef) -> ToolSignature:
    """Return a client tool with a JSON schema for the model."""
    if tool.input_schema:
        return ToolSignature(tool.name, tool.description or "", tool.input_schema)
    parameters = tool.parameters or []
    schema = {
        "type": "object",
        "properties": {parameter.name: schema_of(parameter) for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
    }
    return ToolSignature(tool.name, tool.description or "", schema)


def insert_definitions(instructions: str, tools: Iterable[ToolSignature]) -> str:
    """Replace the first FUNCTION_DEFINITIONS by the tools' definitions as JSON.

    Only the first, because many would multiply long definitions.
    """
    if FUNCTION_DEFINITIONS not in instructions:
        return instructions
    definitions = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools
    ]
    return instructions.replace(FUNCTION_DEFINITIONS, write_json(definitions), 1)


def schema_of(parameter: ToolParameter) -> dict[str, Any]:
    """Convert a parameter. Client libraries send Python's names of types, which become those of JSON Schema."""
    schema: dict[str, Any] = {}
    if json_type := json_type_of(parameter.parameter_type):
        schema["type"] = json_type
    # Some providers refuse an array without `items`. An empty schema allows anything.
    if json_type == "array":
        schema["items"] = {}
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def json_type_of(name: str) -> str | None:
    """Return the JSON type of a Python or JSON type name; None if there is no single one (`Any`, unions)."""
    bare = name.strip().split("[")[0].lower().removeprefix("typing.")
    if bare in JSON_TYPES.values():
        return bare
    return JSON_TYPES.get(bare)


def parameters_of(signature: ToolSignature) -> list[ToolParameter]:
    """Flatten a JSON schema to the tools API's list of parameters, in which nested schemas are only a type.

    A server's schema may have any form. Parts that are not a schema become an object.
    """
    properties, required = (signature.parameters.get(name) for name in ("properties", "required"))
    # The server is somebody else's, so any part of its schema may have any type.
    names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    return [
        ToolParameter(
            name=name,
            parameter_type=type_name(schema),
            description=str(schema.get("description", "")) if isinstance(schema, dict) else "",
            required=name in names,
            default=schema.get("default") if isinstance(schema, dict) else None,
        )
        for name, schema in (properties.items() if isinstance(properties, dict) else ())
    ]


def type_name(schema: Any) -> str:
    """Return the JSON type of a schema; "object" if it has none (a reference, a union)."""
    if not isinstance(schema, dict):
        return "object"
    if isinstance(schema.get("anyOf"), list):
        return next((name for name in map(type_name, schema["anyOf"]) if name != "null"), "object")
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((name for name in declared if name != "null"), None)
    return declared if isinstance(declared, str) and declared else "object"


def describe(group: ToolGroup, signatures: Sequence[ToolSignature]) -> Sequence[Tool]:
    """Return tools as the registry lists them. Tools of an MCP server have its endpoint, as in Llama Stack."""
    endpoint = masked_endpoint(group) if group.provider_id == MCP else None
    return [
        Tool(
            identifier=signature.name,
            provider_id=group.provider_id,
            toolgroup_id=group.identifier,
            description=signature.description,
            parameters=parameters_of(signature),
            input_schema=signature.parameters,
            metadata={"endpoint": endpoint.uri} if endpoint is not None else None,
        )
        for signature in signatures
    ]
