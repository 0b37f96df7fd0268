"""Conversion of tools of October 2024 that an endpoint runs."""

from typing import Any

from stint.domain.llama_stack.october_2024_agents import (
    FunctionCallToolDefinition,
    RemoteTool,
    RestAPIExecutionConfig,
)
from stint.domain.tools import ToolDef, ToolParameter
from stint.services.october.parameters import BUILT_IN, to_parameters
from stint.services.registry.tool_schemas import signature_of


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
