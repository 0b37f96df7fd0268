"""Tools of OpenAI's Agents API, with this server's own: toolgroups, file search, code interpreter, image generation.

The tools of a saved agent have no credentials. Those of a session may have the `authorization` of an MCP server, which
no object shows.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, model_validator

from stint.domain.approvals import Approval
from stint.domain.fields import KnownTypes, Nothing, Omitted, SupportedValues, UnsupportedField, invalid
from stint.domain.limits import MAX_URL_LENGTH, ServerToolNames, ToolgroupArgs, ToolLimit, size_of_json
from stint.domain.llama_stack.rag import MAX_CHUNKS, MAX_VECTOR_DBS
from stint.domain.mcp_servers import McpHeaders, check_server_url
from stint.domain.openai.file_search import StoreName
from stint.domain.redaction import MASK
from stint.domain.schema import Request, Schema
from stint.domain.tools import ToolName
from stint.openai_agents.schemas.contents import LongText

MAX_TOOLS_BYTES = 3_145_728
"""Maximum bytes of the JSON of an agent's tools."""

NO_SEARCH = "Tool search is not supported. Remove defer_loading: the model always sees the function"
NO_ASYNC = "Asynchronous calls are not supported. Remove async: the turn waits for the result"
NO_ENVIRONMENT = "There are no environments. Remove connection_origin, or set it to service"
NO_SOURCE = "The MCP tool has both a credential_id and an authorization. Remove one of them"
NO_REQUEST_METADATA = "Requests to MCP servers have no metadata. Remove it, or send headers"
NO_SAVED_CREDENTIALS = "A saved agent has no credentials. Set the authorization in the agent of a session"


class AgentFunctionTool(Request):
    """A function that the client runs. `parameters` is the JSON schema of its arguments."""

    type: Literal["function"]
    name: ToolName
    description: LongText
    parameters: dict[str, Any]
    defer_loading: Annotated[Omitted[StrictBool], SupportedValues((False,), NO_SEARCH), Field(exclude=True)] = None
    asynchronous: Annotated[
        Omitted[StrictBool], SupportedValues((False,), NO_ASYNC), Field(alias="async", exclude=True)
    ] = None


def refuse_masked(url: str) -> str:
    """Refuse a URL that was copied from an object."""
    if MASK in url:
        raise invalid(f"The server_url contains {MASK}, which replaces possible keys in objects. Send the whole URL.")
    return url


ServerURL = Annotated[
    str, Field(max_length=MAX_URL_LENGTH), AfterValidator(check_server_url), AfterValidator(refuse_masked)
]


class SavedHttpTransport(Request):
    """The address of an MCP server. Its `headers` are shown, so they are not for credentials."""

    type: Literal["http"]
    server_url: ServerURL
    headers: McpHeaders = Field(default_factory=dict)
    authorization: Annotated[Nothing, UnsupportedField(NO_SAVED_CREDENTIALS)] = None


class HttpTransport(Request):
    """The address of an MCP server. `authorization` is an OAuth token, which is sent as a bearer token."""

    type: Literal["http"]
    server_url: ServerURL
    headers: McpHeaders = Field(default_factory=dict)
    authorization: Omitted[Annotated[str, Field(min_length=1, max_length=65_536)]] = None


TRANSPORTS = KnownTypes(
    "transport", ("http",), {"stdio": "the server starts no processes: set the server_url of an MCP server over HTTP"}
)


class AgentMcpTool(Request):
    """The fields that MCP tools of agents and sessions have. `require_approval` is this server's own."""

    type: Literal["mcp"]
    server_label: ToolName
    allowed_tools: ServerToolNames | None = None
    connection_origin: Annotated[Omitted[str], SupportedValues(("service",), NO_ENVIRONMENT)] = None
    credential_id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    request_metadata: Annotated[
        Omitted[dict[str, Any]], SupportedValues(({},), NO_REQUEST_METADATA), Field(exclude=True)
    ] = None
    required: StrictBool = False
    require_approval: Approval = "never"


T = TypeVar("T", bound=AgentMcpTool)


def refuse_two_sources(tool: T, headers: Mapping[str, str]) -> T:
    """Return a tool whose Authorization has one source: itself, or a vault."""
    if tool.credential_id is not None and any(name.lower() == "authorization" for name in headers):
        raise invalid(f"{NO_SOURCE}.")
    return tool


class SavedMcpTool(AgentMcpTool):
    """The tools of an MCP server, without credentials."""

    transport: Annotated[SavedHttpTransport, BeforeValidator(TRANSPORTS)]

    @model_validator(mode="after")
    def require_one_source(self) -> Self:
        return refuse_two_sources(self, self.transport.headers)


class SessionMcpTool(AgentMcpTool):
    """The tools of an MCP server, for one session."""

    transport: Annotated[HttpTransport, BeforeValidator(TRANSPORTS)]

    @model_validator(mode="after")
    def require_one_source(self) -> Self:
        given = {"authorization": self.transport.authorization or ""} if self.transport.authorization else {}
        return refuse_two_sources(self, self.transport.headers | given)


class SearchLocation(Request):
    """The place for which a search looks. `country` has two letters (ISO 3166), `timezone` is an IANA name."""

    city: Annotated[str, Field(max_length=200)] | None = None
    country: Annotated[str, Field(max_length=200)] | None = None
    region: Annotated[str, Field(max_length=200)] | None = None
    timezone: Annotated[str, Field(max_length=200)] | None = None


ContextSize = Literal["low", "medium", "high"]
SearchMode = Literal["live", "cached", "disabled"]


class ApprovableTool(Request):
    """A tool that the server runs. `require_approval`, this server's own field, says which of its calls wait."""

    require_approval: Omitted[Approval] = None


class AgentWebSearchTool(ApprovableTool):
    """A web search. The mode `cached` is a hint, and with `disabled` the model does not get the tool."""

    type: Literal["web_search"]
    mode: SearchMode = "live"
    context_size: ContextSize = "medium"
    allowed_domains: (
        Annotated[list[Annotated[str, Field(min_length=1, max_length=253)]], Field(max_length=100)] | None
    ) = None
    location: SearchLocation | None = None


class ToolgroupTool(ApprovableTool):
    """A toolgroup of this server by its name, with its arguments."""

    type: Literal["toolgroup"]
    name: Annotated[str, Field(min_length=1, max_length=1000)]
    args: ToolgroupArgs = Field(default_factory=dict)


class AgentFileSearchTool(ApprovableTool):
    """A search of vector stores."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[list[StoreName], Field(min_length=1, max_length=MAX_VECTOR_DBS)]
    max_num_results: Omitted[Annotated[StrictInt, Field(ge=1, le=MAX_CHUNKS)]] = None
    filters: Annotated[Nothing, UnsupportedField("The search of agents has no filters. Remove them")] = None
    ranking_options: Annotated[
        Nothing, UnsupportedField("The ranking of the search of agents cannot be chosen. Remove it")
    ] = None


class AgentCodeTool(ApprovableTool):
    """The code interpreter, in a container of the session."""

    type: Literal["code_interpreter"]
    container: Annotated[
        Omitted[Any],
        SupportedValues(({"type": "auto"},), "A session has a container of its own. Remove it"),
        Field(exclude=True),
    ] = None


class AgentImageTool(ApprovableTool):
    """The image generation."""

    type: Literal["image_generation"]


TOOL_TYPES = (
    *("function", "mcp", "web_search"),
    *("file_search", "code_interpreter", "image_generation", "toolgroup"),
)
REFUSED_TOOLS = {
    "tool_search": "declare the functions without defer_loading",
    "programmatic_tool_calling": "the model calls its tools directly: remove the tool",
    "computer_use": "the server has no computer: remove the tool",
    "automations": "agents create no automations: remove the tool, and POST /v1/agents/automations",
}
KNOWN_TOOLS = KnownTypes("tool", TOOL_TYPES, REFUSED_TOOLS, flat="name and parameters")
ServerSideTool = AgentWebSearchTool | ToolgroupTool | AgentFileSearchTool | AgentCodeTool | AgentImageTool
SavedTool = Annotated[
    Annotated[AgentFunctionTool | SavedMcpTool | ServerSideTool, Field(discriminator="type")],
    BeforeValidator(KNOWN_TOOLS),
]
SessionTool = Annotated[
    Annotated[AgentFunctionTool | SessionMcpTool | ServerSideTool, Field(discriminator="type")],
    BeforeValidator(KNOWN_TOOLS),
]
AnyTool = AgentFunctionTool | SavedMcpTool | SessionMcpTool | ServerSideTool


def check_tools(tools: list[Any]) -> list[Any]:
    """Refuse two tools that the model or a reader of items could not distinguish, and too large ones."""
    names: list[tuple[str, str]] = []
    for tool in tools:
        if isinstance(tool, AgentFunctionTool):
            names.append(("functions have the name", tool.name))
        elif isinstance(tool, AgentMcpTool):
            names.append(("MCP servers have the label", tool.server_label))
        elif isinstance(tool, ToolgroupTool):
            names.append(("toolgroups have the name", tool.name))
        else:
            names.append(("tools have the type", tool.type))
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise invalid(f"Two {twice[0]} {twice[1]!r}. Remove one.")
    if (size := size_of_json([tool.model_dump() for tool in tools])) > MAX_TOOLS_BYTES:
        raise invalid(f"The tools have {size:,} bytes of JSON; at most {MAX_TOOLS_BYTES:,} are allowed.")
    return tools


SavedTools = Annotated[list[SavedTool], ToolLimit, AfterValidator(check_tools)]
SessionTools = Annotated[list[SessionTool], ToolLimit, AfterValidator(check_tools)]


class FunctionToolObject(Schema):
    type: Literal["function"] = "function"
    name: str
    description: str
    parameters: dict[str, Any]
    defer_loading: bool = False


class McpTransportObject(Schema):
    """The address of an MCP server. Only saved agents show headers: those that are no credentials."""

    type: Literal["http"] = "http"
    server_url: str
    headers: Omitted[dict[str, str]] = None


class McpToolObject(Schema):
    type: Literal["mcp"] = "mcp"
    server_label: str
    transport: McpTransportObject
    allowed_tools: list[str] | None = None
    connection_origin: Literal["service"] = "service"
    credential_id: str | None = None
    request_metadata: dict[str, Any] = Field(default_factory=dict)
    required: bool = False
    require_approval: Omitted[Approval] = None


class ApprovableToolObject(Schema):
    """A tool that the server runs, with the calls that wait for approval."""

    require_approval: Omitted[Approval] = None


class WebSearchToolObject(ApprovableToolObject):
    type: Literal["web_search"] = "web_search"
    mode: SearchMode = "live"
    context_size: ContextSize = "medium"
    allowed_domains: list[str] | None = None
    location: SearchLocation | None = None


class ToolgroupToolObject(ApprovableToolObject):
    type: Literal["toolgroup"] = "toolgroup"
    name: str
    args: dict[str, Any] = Field(default_factory=dict)


class FileSearchToolObject(ApprovableToolObject):
    type: Literal["file_search"] = "file_search"
    vector_store_ids: list[str]
    max_num_results: Omitted[int] = None


class CodeToolObject(ApprovableToolObject):
    type: Literal["code_interpreter"] = "code_interpreter"


class ImageToolObject(ApprovableToolObject):
    type: Literal["image_generation"] = "image_generation"


AgentToolObject = Annotated[
    FunctionToolObject
    | McpToolObject
    | WebSearchToolObject
    | ToolgroupToolObject
    | FileSearchToolObject
    | CodeToolObject
    | ImageToolObject,
    Field(discriminator="type"),
]
