"""Tools that are defined in a registration."""

from typing import Any, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_validator

from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.schema import Request
from stint.domain.tools import is_tool_name
from stint.domain.validation import describe_faults
from stint.tools.outcomes import TIMEOUT
from stint.tools.port import Toolgroup

LONGEST_TIMEOUT = 840.0
"""Maximum seconds, a little less than a function can run."""


class ToolDefinition(Request):
    """The base of such tools. `parameters` is a JSON schema of type object, `timeout` is in seconds.

    A `repeatable` tool may be called again after an interruption, because a second call changes nothing.
    Unknown keys are refused: a typing error in a key would otherwise silently drop its value.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    timeout: float = Field(default=TIMEOUT, gt=0, le=LONGEST_TIMEOUT)
    repeatable: bool = False

    @field_validator("name")
    @classmethod
    def require_plain_name(cls, name: str) -> str:
        if not is_tool_name(name):
            raise ValueError(f"{name[:100]!r} is not a name that models accept: 1 to 64 letters, digits, _ and -")
        return name

    @field_validator("parameters")
    @classmethod
    def require_object(cls, schema: dict[str, Any]) -> dict[str, Any]:
        if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
            raise ValueError('must be a JSON schema of an object: {"type": "object", "properties": {...}}')
        return schema

    @property
    def signature(self) -> ToolSignature:
        return ToolSignature(self.name, self.description, self.parameters, repeatable=self.repeatable)


Definition = TypeVar("Definition", bound=ToolDefinition)


def read_definitions(toolgroup: Toolgroup, kind: type[Definition]) -> dict[str, Definition]:
    """Read `{"tools": [...]}`, a registration's args, and return the tools by name, in order.

    Raises:
        InvalidRequest: the args are malformed, or a name occurs twice. The message says where, without the values.
    """
    where = f"The args of the toolgroup {toolgroup.toolgroup_id!r}"
    entries = toolgroup.config.get("tools")
    if not isinstance(entries, list):
        raise InvalidRequest(f'{where} must define its tools: {{"tools": [...]}}', param="args")
    definitions: dict[str, Definition] = {}
    for index, entry in enumerate(entries):
        try:
            definition = kind.model_validate(entry)
        except ValidationError as error:
            raise InvalidRequest(
                f"{where} are malformed: tools.{index}: {describe_faults(error)}", param="args"
            ) from None
        if definition.name in definitions:
            raise InvalidRequest(f"{where} define {definition.name!r} twice", param="args")
        definitions[definition.name] = definition
    return definitions
