"""Items: the input and output of responses, in the order of the conversation.

The classes are those of the API and of the store: what a client sends as input is what a later request reads as
history. An id has this server's form or is replaced, since the ids of items are places in the history and must be
unique in it.
"""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from stint.domain.approvals import ApprovalRequestId
from stint.domain.fields import LONG_TEXT, Omitted, invalid
from stint.domain.ids import new_name
from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.mcp_items import McpApprovalRequest, McpApprovalResponse, McpCall, McpListTools
from stint.domain.openai.parts import InputPart, MessagePart, ReasoningText, SummaryText, Text
from stint.domain.schema import Request

ItemStatus = Literal["in_progress", "completed", "incomplete"]
Role = Literal["user", "system", "developer", "assistant"]
Phase = Literal["commentary", "final_answer"]
PARTS_OF: dict[str, tuple[str, ...]] = {
    "user": ("input_text", "input_image", "input_file"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}


class Message(Request):
    """A message. A string as content, and the text of an earlier assistant message, are read as parts."""

    type: Literal["message"] = "message"
    id: str = ""
    status: ItemStatus = "completed"
    role: Role
    content: list[MessagePart]
    phase: Omitted[Phase] = None

    @field_validator("content", mode="before", json_schema_input_type=str | list[MessagePart])
    @classmethod
    def read_content(cls, content: Any, info: ValidationInfo) -> Any:
        kind = "output_text" if info.data.get("role") == "assistant" else "input_text"
        if isinstance(content, str):
            return [{"type": kind, "text": content}]
        if isinstance(content, list) and kind == "output_text":
            return [as_output(part) for part in content]
        return content

    @field_validator("content")
    @classmethod
    def check_parts(cls, content: list[MessagePart], info: ValidationInfo) -> list[MessagePart]:
        role = info.data.get("role")
        for index, part in enumerate(content):
            if role in PARTS_OF and part.type not in PARTS_OF[role]:
                expected = ", ".join(PARTS_OF[role])
                raise invalid(f"Part {index} is {part.type}; a message of role {role} needs parts of type {expected}.")
        return content


def as_output(part: Any) -> Any:
    """Read an input text that a client sends in an assistant's message."""
    is_input = isinstance(part, dict) and part.get("type") == "input_text"
    return part | {"type": "output_text"} if is_input else part


class FunctionCall(Request):
    """A call that the client runs. `arguments` is the text that the model wrote."""

    input_fields: ClassVar[frozenset[str]] = frozenset({"caller", "namespace"})

    type: Literal["function_call"] = "function_call"
    id: str = ""
    call_id: str
    name: str
    arguments: str
    status: ItemStatus = "completed"


def form_of(output: Any) -> str:
    return "text" if isinstance(output, str) else "parts"


CallOutput = Annotated[
    Annotated[str, Field(max_length=LONG_TEXT), Tag("text")] | Annotated[list[InputPart], Tag("parts")],
    Discriminator(form_of),
]


class FunctionCallOutput(Request):
    """The client's result of a call."""

    input_fields: ClassVar[frozenset[str]] = frozenset({"caller", "namespace"})

    type: Literal["function_call_output"] = "function_call_output"
    id: str = ""
    call_id: str
    name: Omitted[str] = None
    output: CallOutput
    status: ItemStatus = "completed"


class ReasoningItem(Request):
    """A model's reasoning. `encrypted_content` is opaque to clients: see `domain.openai.opaque`."""

    type: Literal["reasoning"] = "reasoning"
    id: str = ""
    summary: list[SummaryText] = Field(default_factory=list)
    content: Omitted[list[ReasoningText]] = None
    encrypted_content: Omitted[str] = None
    status: Omitted[ItemStatus] = None


class CompactionItem(Request):
    """A summary of a conversation, opaque to clients: see `domain.openai.opaque`."""

    type: Literal["compaction"] = "compaction"
    id: str = ""
    encrypted_content: Text
    created_by: Omitted[str] = None


class ItemReference(Request):
    """A reference to the stored item with this id."""

    type: Literal["item_reference"] = "item_reference"
    id: Annotated[str, Field(min_length=1)]


class WebSearchSource(Request):
    type: Literal["url"] = "url"
    url: str


class WebSearchAction(Request):
    """A search. `sources` are returned if the request includes `web_search_call.action.sources`."""

    type: Literal["search"] = "search"
    query: str = ""
    queries: Omitted[list[str]] = None
    sources: Omitted[list[WebSearchSource]] = None


class WebSearchCall(Request):
    type: Literal["web_search_call"] = "web_search_call"
    id: str = ""
    status: Literal["in_progress", "searching", "completed", "failed", "incomplete"] = "completed"
    action: WebSearchAction = Field(default_factory=WebSearchAction)
    approval_request_id: ApprovalRequestId = None


HostedCall = McpCall | WebSearchCall | FileSearchCall | ImageGenerationCall | CodeInterpreterCall
"""A call of a tool that the server runs."""

OutputItem = Annotated[
    Message
    | FunctionCall
    | ReasoningItem
    | CompactionItem
    | McpListTools
    | McpCall
    | McpApprovalRequest
    | WebSearchCall
    | FileSearchCall
    | ImageGenerationCall
    | CodeInterpreterCall,
    Field(discriminator="type"),
]
"""An output item of a response."""

Item = Annotated[
    Message
    | FunctionCall
    | FunctionCallOutput
    | ReasoningItem
    | CompactionItem
    | McpListTools
    | McpCall
    | McpApprovalRequest
    | McpApprovalResponse
    | WebSearchCall
    | FileSearchCall
    | ImageGenerationCall
    | CodeInterpreterCall,
    Field(discriminator="type"),
]
"""A stored item of a response's input or of a conversation."""

PREFIXES: dict[str, str] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "compaction": "cmp",
    "mcp_list_tools": "mcpl",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "image_generation_call": "ig",
    "code_interpreter_call": "ci",
}
DIGITS = re.compile(r"[0-9a-f]{32}([0-9]{2,4}|[0-9]{8})?")


def is_item_id(kind: str, identifier: str) -> bool:
    """Return whether an id has this server's form for items of a type."""
    prefix, _, digits = identifier.partition("_")
    return prefix == PREFIXES[kind] and DIGITS.fullmatch(digits) is not None


def name_item(item: Item, *, renew: bool = False) -> Item:
    """Set the id of an item that has none of this server's; with `renew`, of any item."""
    if not renew and is_item_id(item.type, item.id):
        return item
    return item.model_copy(update={"id": new_name(PREFIXES[item.type])})


def name_items(items: list[Item]) -> list[Item]:
    """Make the ids of items unique: the second of two equal ones is replaced."""
    seen: set[str] = set()
    named = []
    for item in items:
        item = name_item(item, renew=item.id in seen)
        seen.add(item.id)
        named.append(item)
    return named
