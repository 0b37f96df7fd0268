"""Conversion of the parameters of tools of October 2024, and of tools that an endpoint runs."""

from collections.abc import Mapping
from typing import Any

from stint.domain.tools import ToolDef, ToolParameter
from stint.october_2024.schemas.agents import (
    FunctionCallToolDefinition,
    OctoberParameter,
    RemoteTool,
    RestAPIExecutionConfig,
)
from stint.services.registry.tool_schemas import signature_of

BUILT_IN = {
    "brave_search": ("query", "The query to search for"),
    "wolfram_alpha": ("query", "The question to compute"),
    "photogen": ("query", "A description of the image"),
    "code_interpreter": ("code", "Python code to run"),
}
"""The built-in tools of October 2024 with their parameter and its description."""


def to_parameters(parameters: Mapping[str, OctoberParameter]) -> list[ToolParameter]:
    """Convert the parameters of a function."""
    return [
        ToolParameter(
            name=name,
            parameter_type=each.param_type,
            description=each.description or "",
            required=each.required,
            default=each.default,
        )
        for name, each in parameters.items()
    ]


def to_endpoint(definition: RemoteTool, config: RestAPIExecutionConfig) -> dict[str, Any]:
    """Convert a tool that an endpoint runs to the definition of an endpoint (docs/tools.md).

    The arguments of a call are added to the fields of the body, or to the query for GET and DELETE.
    """
    signature = signature_of(describe_tool(definition))
    return {
        "name": signature.name,
        "description": signature.description,
        "parameters": signature.parameters,
        "url": config.url.uri,
        "method": config.method,
        "params": config.params,
        "headers": {name: str(value) for name, value in config.headers.items()},
        "body": config.body or None,
    }


def describe_tool(definition: RemoteTool) -> ToolDef:
    """Return the name and the parameters of a tool. A built-in tool has its own."""
    if isinstance(definition, FunctionCallToolDefinition):
        parameters = to_parameters(definition.parameters)
        return ToolDef(name=definition.function_name, description=definition.description, parameters=parameters)
    kind: str = getattr(definition, "type", "")
    name, description = BUILT_IN[kind]
    parameter = ToolParameter(name=name, parameter_type="string", description=description)
    return ToolDef(name=kind, description=f"The tool {kind}", parameters=[parameter])
