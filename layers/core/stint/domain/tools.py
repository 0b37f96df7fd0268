"""Tools: definitions, calls and results.

These types are on the wire of Llama Stack's API, in the store, and in the loop. What differs between them is converted
here: deep arguments are text on the wire and in the store and objects in memory, and a generated image is in a result
for the user but not for a model.

Args and metadata of tools are limited one by one, and all together, because each of 128 tools may have the largest.
"""

import json
import re
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, field_serializer, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from stint.domain.approvals import Approval
from stint.domain.content import Content, ImageContentItem, items_of, text_of
from stint.domain.fields import Omitted, invalid
from stint.domain.json_text import children_of, parse_json
from stint.domain.limits import MAX_ALL_ARGS_BYTES, ToolLimit, check_args, check_metadata, size_of_json
from stint.domain.schema import Request, Schema

LONGEST_TOOL_NAME = 64
_TOOL_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_TOOL_NAME}}}")


ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
"""The name of a tool or of a server in OpenAI's APIs."""


def is_tool_name(name: str) -> bool:
    """Return whether every provider accepts a name. OpenAI and Bedrock accept no others."""
    return _TOOL_NAME.fullmatch(name) is not None


class ToolParameter(Request):
    name: str
    parameter_type: str
    description: str
    required: bool = True
    default: Any | None = None


class ToolDef(Request):
    """A tool that the client runs. The turn pauses when the model calls it.

    `input_schema`, a JSON schema of type object, is in place of `parameters`.
    """

    name: str = Field(min_length=1)
    description: str | None = None
    parameters: list[ToolParameter] | None = None
    metadata: dict[str, Any] | None = None
    input_schema: Omitted[dict[str, Any]] = None

    @model_validator(mode="after")
    def refuse_both(self) -> "ToolDef":
        if self.input_schema is not None and self.parameters is not None:
            raise invalid("A tool has either parameters or an input_schema. Remove one.")
        return self


class AgentToolGroupWithArgs(Request):
    """A toolgroup, or one of its tools. The `args` override the model's arguments.

    `require_approval` says which of its calls wait for the client's approval, besides those that wait anyway.
    """

    name: str
    args: dict[str, Any] = Field(default_factory=dict)
    require_approval: Omitted[Approval] = None
    sealed: SkipJsonSchema[Omitted[str]] = None
    """The encrypted credentials of a stored agent's args, which no request and no answer has."""


class OfferedVaults(Schema):
    """The vaults whose credentials an MCP server may get.

    `owner` is the hash of the end user of the session, empty without one. `credential_id` chooses one of several.
    """

    ids: list[str]
    owner: str = ""
    credential_id: str | None = None


class ServerWithVaults(AgentToolGroupWithArgs):
    """An MCP server in the configuration of a turn. No request and no record is read as one."""

    vaults: OfferedVaults


def form_of_toolgroup(value: Any) -> str:
    return "name" if isinstance(value, str) else "group"


def limit_args(group: str | AgentToolGroupWithArgs) -> str | AgentToolGroupWithArgs:
    if isinstance(group, AgentToolGroupWithArgs):
        check_args(group.args)
        return group if group.sealed is None else group.model_copy(update={"sealed": None})
    return group


def limit_metadata(tool: ToolDef) -> ToolDef:
    check_metadata(tool.metadata or {})
    return tool


def limit_all_args(groups: list[str | AgentToolGroupWithArgs]) -> list[str | AgentToolGroupWithArgs]:
    with_args = [group for group in groups if isinstance(group, AgentToolGroupWithArgs)]
    approvals = [named_in(group.require_approval) for group in with_args if group.require_approval is not None]
    limit_together("args", [*(group.args for group in with_args), *approvals])
    return groups


def named_in(approval: Approval) -> dict[str, Any]:
    """Return what counts as args of an approval: the names of tools, which may be many."""
    return {} if isinstance(approval, str) else {"tool_names": approval.named}


def limit_all_metadata(tools: list[ToolDef]) -> list[ToolDef]:
    limit_together("metadata", [tool.metadata for tool in tools if tool.metadata])
    return tools


def limit_together(noun: str, values: list[dict[str, Any]]) -> None:
    size = sum(map(size_of_json, values))
    if size > MAX_ALL_ARGS_BYTES:
        raise PydanticCustomError(
            "too_large",
            "their {noun} have {size} bytes of JSON in total; at most {limit} are allowed. "
            "Store large values elsewhere.",
            {"noun": noun, "size": size, "limit": MAX_ALL_ARGS_BYTES},
        )


AgentToolGroup = Annotated[
    Annotated[str, Tag("name")] | Annotated[AgentToolGroupWithArgs, Tag("group")], Discriminator(form_of_toolgroup)
]
NewToolGroups = Annotated[
    list[Annotated[AgentToolGroup, AfterValidator(limit_args)]], ToolLimit, AfterValidator(limit_all_args)
]
"""The toolgroups of a request, within its limits."""
NewClientTools = Annotated[
    list[Annotated[ToolDef, AfterValidator(limit_metadata)]], ToolLimit, AfterValidator(limit_all_metadata)
]
"""The client tools of a request, within its limits."""


class ToolChoice(StrEnum):
    auto = "auto"
    required = "required"
    none = "none"


ToolChoiceOrName = Annotated[ToolChoice | str, Field(union_mode="left_to_right")]
ToolPromptFormat = Literal["json", "function_tag", "python_list"]
SystemMessageBehavior = Literal["append", "replace"]


class ToolConfig(Request):
    """The use of tools. `tool_choice` may also be the name of one tool."""

    tool_choice: ToolChoiceOrName = ToolChoice.auto
    tool_prompt_format: ToolPromptFormat | None = None
    system_message_behavior: SystemMessageBehavior = "append"


class ToolCall(Schema):
    """A call by the model. `arguments` is text if it is not a JSON object, or an object nested deeper than the types
    of llama-stack-client 0.2.12 allow: that library fails at the end of such a turn.
    """

    call_id: str
    tool_name: str
    arguments: dict[str, Any] | str
    arguments_json: str | None = None

    # Deep arguments are text only on the wire and in the store. In memory, an object is always a dict.
    @field_validator("arguments")
    @classmethod
    def read_object(cls, arguments: dict[str, Any] | str) -> dict[str, Any] | str:
        if isinstance(arguments, dict):
            return arguments
        try:
            value = parse_json(arguments)
        except ValueError:
            return arguments
        return value if isinstance(value, dict) else arguments

    @field_serializer("arguments", when_used="json")
    def write_deep_as_text(self, arguments: dict[str, Any] | str) -> dict[str, Any] | str:
        if isinstance(arguments, str) or not any(children_of(child) for child in children_of(arguments)):
            return arguments
        return self.arguments_json or json.dumps(arguments)


class ElicitedForm(Schema):
    """A form of a tool's server, which its client fills in (`stint.domain.elicitations`)."""

    message: str
    requested_schema: dict[str, Any]


class AskedInput(Schema):
    """The question of a tool's server in the middle of a call. Nobody else sees its `state`.

    The keys of the forms are Stint's. `server_keys` has the server's, by these: they are text of the server of any
    length, and only sent back to it.
    """

    forms: dict[str, ElicitedForm]
    state: str | None = None
    server_keys: dict[str, str] = Field(default_factory=dict)


NO_FILTERS = "The search engines support no filters, locations or offline modes. Remove it"


DENIED = "The user did not approve this call."


def write_denial(reason: str | None) -> str:
    """Return the result, for the model, of a call that its user did not approve."""
    return f"{DENIED} {reason}" if reason else DENIED


GENERATED_IMAGE = "generated_image"
"""Key of a result's metadata for the properties of the image that an image model generated.

The image is in the content, for the user. Models get the content's texts only."""


LARGE_IMAGE = 10_000
"""Characters of base64 from which an image is stored apart from what models get of its result."""


class ToolResponse(Request):
    """The result of one call."""

    call_id: str
    tool_name: str
    content: Content
    metadata: dict[str, Any] | None = None

    @property
    def content_for_model(self) -> Content:
        """Return the content without a generated image, of which a model needs no bytes."""
        return text_of(self.content) if self.generated_image is not None else self.content

    def without_image(self) -> "ToolResponse | None":
        """Return the result as models get it; None if it has no large image."""
        if len(self.generated_image or "") < LARGE_IMAGE:
            return None
        return self.model_copy(update={"content": self.content_for_model})

    @property
    def generated_image(self) -> str | None:
        """Return the base64 of the image that an image model generated; None if there is none."""
        if GENERATED_IMAGE not in (self.metadata or {}):
            return None
        images = [item.image.data for item in items_of(self.content) if isinstance(item, ImageContentItem)]
        return next((data for data in images if data is not None), None)

    @property
    def image_properties(self) -> dict[str, Any]:
        """Return the properties of the generated image."""
        found = (self.metadata or {}).get(GENERATED_IMAGE)
        return found if isinstance(found, dict) else {}


class ToolResponseMessage(Request):
    """A tool's result as a message of a turn. Clients of October 2024 send the tool's name, too."""

    role: Literal["tool"] = "tool"
    call_id: str
    tool_name: Omitted[str] = None
    content: Content
