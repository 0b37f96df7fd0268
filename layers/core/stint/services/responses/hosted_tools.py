"""The hosted tools of a response, and those that its model may call.

A response has tools of three kinds: functions, which the client runs; the tools of MCP servers, which are known once
the servers have listed them; and hosted tools, which the server runs. `tool_choice` may allow some of them. What it
leaves out is not shown to the model, so it needs no approval either: `HostedTools.of` applies the choice to each kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from stint.dataclasses import dataclass, field
from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.openai.code_interpreter import CodeInterpreterChoice, CodeInterpreterTool
from stint.domain.openai.file_search import FileSearchChoice, FileSearchTool
from stint.domain.openai.image_generation import ImageGenerationChoice, ImageGenerationTool
from stint.domain.openai.mcp_items import McpCall, McpError, McpListTools, McpToolInfo
from stint.domain.openai.response_options import PlainText
from stint.domain.openai.response_tools import (
    AllowedToolsChoice,
    FunctionChoice,
    FunctionTool,
    McpChoice,
    McpTool,
    NamedChoice,
    ResponseTool,
    ResponseToolChoice,
    WebSearchTool,
)
from stint.domain.openai.stored_responses import ResponseSettings
from stint.domain.tools import ToolResponse
from stint.loop.toolbox import ServerTool
from stint.tools.port import CODE_INTERPRETER, FILE_SEARCH, IMAGE_GENERATION

WEB_SEARCH = "web_search"
"""The models' name of the web search."""

FILE_SEARCHES = (FILE_SEARCH, "knowledge_search")
"""Names of the file search in stored calls. The second one, Llama Stack's, is in those of earlier versions."""


@dataclass(frozen=True, slots=True)
class HostedTools:
    """The hosted tools of a response that its model may call."""

    functions: frozenset[str] = frozenset()
    """The names of the client's functions."""

    servers: Mapping[str, str] = field(default_factory=dict)
    """The label of the MCP server of each of its tools, by the tool's name."""

    approvals: frozenset[str] = frozenset()
    """The tools whose calls wait for the client's approval."""

    searches: bool = False
    """Whether there is a web search."""

    searches_files: bool = False
    """Whether there is a file search."""

    image_tool: ImageGenerationTool | None = None
    """The tool that generates images."""

    cites: bool = False
    """Whether the text may cite files. JSON never does."""

    runs_code: bool = False
    """Whether there is a code interpreter."""

    @classmethod
    def of(cls, settings: ResponseSettings, listed: Sequence[McpListTools]) -> Self:
        names = callable_names(settings.tool_choice, listed)
        by_label = {tool.server_label: tool for tool in settings.tools if isinstance(tool, McpTool)}
        offered = [(server.server_label, info.name) for server in listed for info in server.tools]
        servers = {name: label for label, name in offered if may_call(name, names)}
        approvals = [name for name, label in servers.items() if by_label[label].needs_approval(name)]
        approvals += [name for name in hosted_approvals(settings.tools) if may_call(name, names)]
        functions = [tool.name for tool in settings.tools if isinstance(tool, FunctionTool)]
        searches_files = any(isinstance(tool, FileSearchTool) for tool in settings.tools)
        return cls(
            frozenset(name for name in functions if may_call(name, names)),
            servers,
            frozenset(approvals),
            any(isinstance(tool, WebSearchTool) for tool in settings.tools) and may_call(WEB_SEARCH, names),
            searches_files and may_call(FILE_SEARCH, names),
            find_image_tool(settings) if may_call(IMAGE_GENERATION, names) else None,
            searches_files and is_plain(settings),
            any(isinstance(tool, CodeInterpreterTool) for tool in settings.tools) and may_call(CODE_INTERPRETER, names),
        )


def hosted_approvals(tools: Iterable[ResponseTool]) -> Iterator[str]:
    """Yield the models' names of the tools whose calls wait for approval, besides those of MCP servers."""
    for tool in tools:
        match tool:
            case WebSearchTool(require_approval="always"):
                yield WEB_SEARCH
            case FileSearchTool(require_approval="always"):
                yield FILE_SEARCH
            case ImageGenerationTool(require_approval="always"):
                yield IMAGE_GENERATION
            case CodeInterpreterTool(require_approval="always"):
                yield CODE_INTERPRETER


def find_image_tool(settings: ResponseSettings) -> ImageGenerationTool | None:
    """Return the tool that generates images, if there is one."""
    return next((tool for tool in settings.tools if isinstance(tool, ImageGenerationTool)), None)


def is_plain(settings: ResponseSettings) -> bool:
    """Return whether the model writes plain text."""
    return settings.text is None or isinstance(settings.text.format, PlainText)


def may_call(name: str, names: frozenset[str] | None) -> bool:
    return names is None or name in names


def callable_names(choice: ResponseToolChoice | None, listed: Iterable[McpListTools]) -> frozenset[str] | None:
    """Return the tools that the model may call; None for all.

    Raises:
        InvalidRequest: the choice names a tool that its MCP server does not have.
    """
    listed = list(listed)
    match choice:
        case AllowedToolsChoice(tools=named):
            return frozenset(name for each in named for name in names_of(each, listed))
        case McpChoice(name=None):
            return frozenset(names_of(choice, listed))
        case _:
            return None


def names_of(choice: NamedChoice, listed: Iterable[McpListTools]) -> list[str]:
    """Return the tools of a choice. Without a tool's name, these are all tools of the MCP server.

    Raises:
        InvalidRequest: the server has no such tool, or none at all.
    """
    match choice:
        case FunctionChoice(name=name):
            return [name]
        case McpChoice(server_label=label, name=name):
            offered = [info.name for server in listed if server.server_label == label for info in server.tools]
            if not offered or (name is not None and name not in offered):
                wanted = f"tool {name!r}" if name is not None else "tool to choose"
                raise InvalidRequest(
                    f"The MCP server {label!r} has no {wanted}. Its tools are: {offered}",
                    code="tool_not_found",
                    param="tool_choice",
                )
            return offered if name is None else [name]
        case FileSearchChoice():
            return [FILE_SEARCH]
        case ImageGenerationChoice():
            return [IMAGE_GENERATION]
        case CodeInterpreterChoice():
            return [CODE_INTERPRETER]
        case _:
            return [WEB_SEARCH]


def finish_mcp_call(item: McpCall, response: ToolResponse) -> McpCall:
    """Return the item of a call that an MCP server has answered."""
    text = text_of(response.content)
    if (response.metadata or {}).get("error"):
        error = McpError(type="mcp_tool_execution_error", content=text)
        return item.model_copy(update={"status": "failed", "error": error})
    return item.model_copy(update={"status": "completed", "output": text})


def result_of(item: McpCall) -> str:
    """Return the text of a call's result or error."""
    match item.error:
        case None:
            return item.output or ""
        case McpError(content=str(text)):
            return text
        case error:
            return error.message or error.model_dump_json()


def list_item(server: McpTool, found: Sequence[ServerTool]) -> McpListTools:
    """Return the item that lists the tools of a server, without its id."""
    return McpListTools(server_label=server.server_label, tools=[to_info(each.signature) for each in found])


def to_info(tool: ToolSignature) -> McpToolInfo:
    """Return a tool as the list of its server shows it."""
    shown = {"description": tool.description or None, "annotations": tool.annotations}
    return McpToolInfo.model_validate({"name": tool.name, "input_schema": tool.parameters, **shown})
