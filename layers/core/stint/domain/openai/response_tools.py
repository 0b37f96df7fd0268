"""Tools of a response, and the choices among them.

The objects of OpenAI's Responses API. A tool is stored without the credentials that its request has.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, StrictBool, Tag, field_validator

from stint.domain.approvals import Approval, ApprovalMode, needs_approval
from stint.domain.fields import KnownTypes, Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.mcp_servers import (
    AllowedNames,
    McpHeaders,
    check_server_url,
    is_allowed,
    size_of_credentials,
)
from stint.domain.openai.code_interpreter import CodeInterpreterChoice, CodeInterpreterTool
from stint.domain.openai.file_search import FileSearchChoice, FileSearchTool
from stint.domain.openai.image_generation import ImageGenerationChoice, ImageGenerationTool
from stint.domain.schema import Request
from stint.domain.tools import NO_FILTERS, ToolName

NO_SEARCH = "Tool search is not supported. Declare the tool in full"
NO_PROGRAMS = "Programmatic tool calling is not supported. The model calls its tools directly"
DeferLoading = Annotated[Omitted[StrictBool], SupportedValues((False,), NO_SEARCH), Field(exclude=True)]
AllowedCallers = Annotated[Omitted[list[str]], SupportedValues((["direct"],), NO_PROGRAMS), Field(exclude=True)]


class FunctionTool(Request):
    """A function that the client runs. `parameters` is a JSON schema of type object; null means none."""

    type: Literal["function"] = "function"
    name: ToolName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: StrictBool | None = None
    defer_loading: DeferLoading = None
    allowed_callers: AllowedCallers = None
    asynchronous: Annotated[
        Omitted[StrictBool],
        SupportedValues((False,), "Asynchronous calls are not supported. Remove async"),
        Field(alias="async", exclude=True),
    ] = None
    require_approval: Annotated[
        Omitted[str], SupportedValues(("never",), "The client runs functions itself. Remove it"), Field(exclude=True)
    ] = None
    output_schema: Annotated[Nothing, UnsupportedField("The results of functions are not checked. Remove it")] = None


class McpTool(Request):
    """The tools of an MCP server that this server calls.

    `authorization` is an OAuth token, sent as a bearer token. It and the `headers` are used for this response only,
    and are neither stored nor returned.
    """

    type: Literal["mcp"] = "mcp"
    server_label: ToolName
    connector_id: Annotated[Nothing, UnsupportedField("Connectors are not supported. Set the server_url")] = None
    tunnel_id: Annotated[Nothing, UnsupportedField("Tunnels are not supported. Set the server_url")] = None
    server_url: str
    server_description: str | None = None
    headers: Omitted[McpHeaders] = None
    authorization: Omitted[str] = None
    allowed_tools: AllowedNames | None = None
    require_approval: Approval = "always"
    defer_loading: DeferLoading = None
    allowed_callers: AllowedCallers = None

    @field_validator("server_url")
    @classmethod
    def check_url(cls, url: str) -> str:
        return check_server_url(url)

    @property
    def carries_credentials(self) -> bool:
        return bool(self.headers or self.authorization)

    @property
    def size_of_headers(self) -> int:
        """Return the number of characters of the headers and the authorization."""
        return size_of_credentials(self.headers, self.authorization)

    def allows(self, name: str) -> bool:
        """Return whether the model may call a tool of this server."""
        return is_allowed(self.allowed_tools, name)

    def needs_approval(self, name: str) -> bool:
        """Return whether a call of a tool waits for the client's approval."""
        return needs_approval(self.require_approval, name)


class WebSearchTool(Request):
    """A web search that runs here. `search_context_size` low, medium and high sets the number of pages."""

    type: Literal["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]
    search_context_size: Literal["low", "medium", "high"] = "medium"
    filters: Annotated[Nothing, UnsupportedField(NO_FILTERS)] = None
    user_location: Annotated[Nothing, UnsupportedField(NO_FILTERS)] = None
    external_web_access: Annotated[Omitted[StrictBool], SupportedValues((True,), NO_FILTERS), Field(exclude=True)] = (
        None
    )
    search_content_types: Annotated[
        Omitted[list[str]], SupportedValues((["text"],), "Only text search is supported"), Field(exclude=True)
    ] = None
    require_approval: ApprovalMode = None


WEB_SEARCH_TYPES = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
TOOL_TYPES = ("function", "mcp", "file_search", "image_generation", "code_interpreter", *WEB_SEARCH_TYPES)
REFUSED_TOOLS = {
    "computer": "the server has no computer: remove the tool",
    "computer_use": "the server has no computer: remove the tool",
    "computer_use_preview": "the server has no computer: remove the tool",
    "shell": "declare a function that runs the command",
    "local_shell": "declare a function that runs the command",
    "apply_patch": "declare a function that takes the patch",
    "custom": "providers accept only functions with JSON arguments: declare a function",
    "namespace": "declare its tools one by one",
    "tool_search": "declare the tools in full",
    "programmatic_tool_calling": "the model calls its tools directly",
}
ResponseTool = Annotated[
    Annotated[
        FunctionTool | McpTool | WebSearchTool | FileSearchTool | ImageGenerationTool | CodeInterpreterTool,
        Field(discriminator="type"),
    ],
    BeforeValidator(KnownTypes("tool", TOOL_TYPES, REFUSED_TOOLS, flat="name and parameters")),
]


def without_credentials(tools: Sequence[ResponseTool]) -> list[ResponseTool]:
    """Return the tools as they are stored, without authorization and headers."""
    secret = {"headers": None, "authorization": None}
    return [tool.model_copy(update=secret) if isinstance(tool, McpTool) else tool for tool in tools]


class FunctionChoice(Request):
    """The model must call this function."""

    type: Literal["function"] = "function"
    name: str


class McpChoice(Request):
    """The model must call a tool of this server, or the one with this name."""

    type: Literal["mcp"] = "mcp"
    server_label: str
    name: Omitted[str] = None


class WebSearchChoice(Request):
    """The model must search the web."""

    type: Literal["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]


NamedChoice = Annotated[
    Annotated[
        FunctionChoice | McpChoice | WebSearchChoice | FileSearchChoice | ImageGenerationChoice | CodeInterpreterChoice,
        Field(discriminator="type"),
    ],
    BeforeValidator(KnownTypes("tool choice", TOOL_TYPES, REFUSED_TOOLS, flat="name")),
]


class AllowedToolsChoice(Request):
    """The model sees all tools, and may call only these."""

    type: Literal["allowed_tools"] = "allowed_tools"
    mode: Literal["auto", "required", "none"] = "auto"
    tools: Annotated[list[NamedChoice], Field(min_length=1, max_length=128)]


def form_of_choice(value: Any) -> str:
    if isinstance(value, str):
        return "mode"
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "allowed_tools" if kind == "allowed_tools" else "tool"


ResponseToolChoice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("mode")]
    | Annotated[AllowedToolsChoice, Tag("allowed_tools")]
    | Annotated[NamedChoice, Tag("tool")],
    Discriminator(form_of_choice),
]


def check_tools(tools: list[ResponseTool]) -> list[ResponseTool]:
    """Refuse two functions, or two servers, with the same name."""
    names = [tool.name for tool in tools if isinstance(tool, FunctionTool)]
    labels = [tool.server_label for tool in tools if isinstance(tool, McpTool)]
    for kind, given in (("functions have the name", names), ("MCP servers have the label", labels)):
        twice = next((name for name in given if given.count(name) > 1), None)
        if twice is not None:
            raise invalid(f"Two {kind} {twice!r}. Rename one.")
    return tools


def check_choice(choice: ResponseToolChoice, tools: Sequence[ResponseTool]) -> None:
    """Refuse the choice of a tool that the request does not declare."""
    if choice == "required" and not tools:
        raise invalid("A tool is required by tool_choice, but tools has none. Add the tool.")
    named = choice.tools if isinstance(choice, AllowedToolsChoice) else [] if isinstance(choice, str) else [choice]
    for each in named:
        if not any(names_tool(each, tool) for tool in tools):
            what = each.name if isinstance(each, FunctionChoice) else getattr(each, "server_label", each.type)
            raise invalid(f"The {each.type} tool {what!r} is not among the tools of the request.")


def names_tool(choice: NamedChoice, tool: ResponseTool) -> bool:
    """Return whether a choice names a declared tool. The tools of an MCP server are not checked."""
    if isinstance(choice, FunctionChoice):
        return isinstance(tool, FunctionTool) and tool.name == choice.name
    if isinstance(choice, McpChoice):
        return isinstance(tool, McpTool) and tool.server_label == choice.server_label
    if isinstance(choice, ImageGenerationChoice):
        return isinstance(tool, ImageGenerationTool)
    if isinstance(choice, CodeInterpreterChoice):
        return isinstance(tool, CodeInterpreterTool)
    return isinstance(tool, FileSearchTool if isinstance(choice, FileSearchChoice) else WebSearchTool)
