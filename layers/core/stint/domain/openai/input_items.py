"""Input items of a request. They have more forms and tighter limits than stored items.

A type may be missing, ids may be those of another server, and texts have limits that stored items, which were checked
when they came in or were made here, are not checked against again. So a request is read with these classes, and
converted to those of `items.py`, in which it is stored.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from stint.domain.fields import LONG_TEXT, KnownTypes, Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.limits import MessageLimit, PartLimit
from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.items import (
    PREFIXES,
    CompactionItem,
    FunctionCall,
    FunctionCallOutput,
    ItemReference,
    Message,
    ReasoningItem,
    WebSearchCall,
)
from stint.domain.openai.mcp_items import McpApprovalRequest, McpApprovalResponse, McpCall, McpListTools
from stint.domain.schema import Request
from stint.domain.tools import ToolName

CallId = Annotated[str, Field(min_length=1, max_length=64)]
Caller = Annotated[
    Omitted[dict[str, Any]],
    SupportedValues(({"type": "direct"},), "Programmatic tool calling is not supported. Set the caller to direct"),
    Field(exclude=True),
]
Namespace = Annotated[Nothing, UnsupportedField("Tool namespaces are not supported. Remove it")]


class FunctionCallInput(FunctionCall):
    """An earlier call of the conversation."""

    call_id: CallId
    name: ToolName
    caller: Caller = None
    namespace: Namespace = None


class FunctionCallOutputInput(FunctionCallOutput):
    """The result of a call. The `name` of its tool is kept; `call_id` identifies the call."""

    call_id: CallId
    caller: Caller = None
    namespace: Namespace = None


class ReasoningInput(ReasoningItem):
    encrypted_content: Omitted[Annotated[str, Field(max_length=LONG_TEXT)]] = None


class CompactionInput(CompactionItem):
    encrypted_content: Annotated[str, Field(max_length=LONG_TEXT)]


NO_SHELL = "the shell tools are not supported: declare a function"
NO_PROGRAMS = "programmatic tool calling is not supported"
REFUSED_ITEMS = {
    "computer_call": "the computer tool is not supported",
    "computer_call_output": "the computer tool is not supported",
    "shell_call": NO_SHELL,
    "shell_call_output": NO_SHELL,
    "local_shell_call": NO_SHELL,
    "local_shell_call_output": NO_SHELL,
    "apply_patch_call": "the apply_patch tool is not supported: declare a function",
    "apply_patch_call_output": "the apply_patch tool is not supported: declare a function",
    "custom_tool_call": "custom tools are not supported: providers accept only functions with JSON arguments",
    "custom_tool_call_output": "custom tools are not supported: providers accept only functions with JSON arguments",
    "tool_search_call": "tool search is not supported",
    "tool_search_output": "tool search is not supported",
    "additional_tools": "declare all tools in the field tools",
    "configuration_update": "send the settings with each request",
    "compaction_trigger": "use POST /v1/responses/compact",
    "program": NO_PROGRAMS,
    "program_output": NO_PROGRAMS,
}
KNOWN_ITEMS = KnownTypes("item", (*PREFIXES, "item_reference"), REFUSED_ITEMS)


def read_item(item: Any) -> Any:
    """Add a missing type by the fields of an item, and refuse unsupported types."""
    if not isinstance(item, dict):
        return item
    if item.get("type") is None and ("role" in item or "id" in item):
        item = item | {"type": "message" if "role" in item else "item_reference"}
    return KNOWN_ITEMS(item)


def to_stored_class(item: Any) -> Any:
    """Convert an item within the input limits to the class in which it is stored."""
    stored_class = next((kind for kind in STORED_CLASSES if isinstance(item, kind)), None)
    if stored_class is None:
        return item
    return stored_class.model_construct(**{name: getattr(item, name) for name in stored_class.model_fields})


STORED_CLASSES: tuple[type[Request], ...] = (FunctionCall, FunctionCallOutput, ReasoningItem, CompactionItem)
InputItem = Annotated[
    Annotated[
        Message
        | FunctionCallInput
        | FunctionCallOutputInput
        | ReasoningInput
        | CompactionInput
        | ItemReference
        | McpListTools
        | McpCall
        | McpApprovalRequest
        | McpApprovalResponse
        | WebSearchCall
        | FileSearchCall
        | ImageGenerationCall
        | CodeInterpreterCall,
        Field(discriminator="type"),
    ],
    BeforeValidator(read_item),
    AfterValidator(to_stored_class),
]


def read_input(value: Any) -> Any:
    """Read a string as one user message."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not isinstance(value, list):
        raise invalid("The input must be a string or a list of items.")
    return value


Input = Annotated[
    list[InputItem], MessageLimit, PartLimit, BeforeValidator(read_input, json_schema_input_type=str | list[InputItem])
]
