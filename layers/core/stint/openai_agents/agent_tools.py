"""Conversion of the tools of OpenAI's Agents API to toolgroups and client tools of an agent, and back.

    function            a client tool with a JSON schema
    mcp                 builtin::mcp, whose args are the server
    web_search          builtin::websearch; disabled, it is shown, and turns leave it out
    file_search         builtin::rag
    code_interpreter    builtin::code_interpreter
    image_generation    builtin::photogen
    toolgroup           the toolgroup

An agent has its client tools and its toolgroups in two lists, so objects show functions first, and no credentials.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from stint.domain.approvals import Approval
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.redaction import MASK
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs, ToolDef
from stint.openai_agents.schemas.tools import (
    AgentCodeTool,
    AgentFileSearchTool,
    AgentFunctionTool,
    AgentImageTool,
    AgentToolObject,
    AgentWebSearchTool,
    AnyTool,
    ApprovableTool,
    CodeToolObject,
    FileSearchToolObject,
    FunctionToolObject,
    ImageToolObject,
    McpToolObject,
    McpTransportObject,
    SavedMcpTool,
    SearchLocation,
    SessionMcpTool,
    ToolgroupToolObject,
    WebSearchToolObject,
)
from stint.services.registry.tool_schemas import signature_of
from stint.tools.credential_names import is_key, is_secret
from stint.tools.masking import mask, mask_url
from stint.tools.port import CODE_GROUP, IMAGE_GROUP, MCP_SERVER, RAG, WEB_SEARCH_GROUP

NO_ARGS: Mapping[str, Any] = {}
SEARCH_ARGS = {"allowed_domains", "search_context_size", "user_location", "mode"}


def to_client_tools(tools: Iterable[AnyTool]) -> list[ToolDef]:
    """Return the functions that the client runs."""
    functions = [tool for tool in tools if isinstance(tool, AgentFunctionTool)]
    return [ToolDef(name=each.name, description=each.description, input_schema=each.parameters) for each in functions]


def to_toolgroups(tools: Iterable[AnyTool]) -> list[AgentToolGroup]:
    """Return the toolgroups that the server runs."""
    groups = (to_toolgroup(tool) for tool in tools)
    return [group for group in groups if group is not None]


def to_toolgroup(tool: AnyTool) -> AgentToolGroup | None:
    """Convert a tool that the server runs; None if it is a function."""
    match tool:
        case SavedMcpTool() | SessionMcpTool():
            return AgentToolGroupWithArgs(name=MCP_SERVER, args=mcp_args(tool))
        case AgentWebSearchTool():
            return group_of(tool, WEB_SEARCH_GROUP, search_args(tool))
        case AgentFileSearchTool(vector_store_ids=stores, max_num_results=most):
            limit = {} if most is None else {"query_config": {"max_chunks": most}}
            return group_of(tool, RAG, {"vector_db_ids": stores, **limit})
        case AgentCodeTool():
            return group_of(tool, CODE_GROUP)
        case AgentImageTool():
            return group_of(tool, IMAGE_GROUP)
        case AgentFunctionTool():
            return None
        case _:
            return group_of(tool, tool.name, tool.args)


def group_of(tool: ApprovableTool, name: str, args: Mapping[str, Any] = NO_ARGS) -> AgentToolGroup:
    """Return the toolgroup of a tool: its name, if that says all."""
    approval = tool.require_approval
    if not args and approval is None:
        return name
    return AgentToolGroupWithArgs(name=name, args=dict(args), require_approval=approval)


def mcp_args(tool: SavedMcpTool | SessionMcpTool) -> dict[str, Any]:
    """Return the args of the toolgroup of an MCP server."""
    approval = tool.require_approval
    args = {
        "server_label": tool.server_label,
        "server_url": tool.transport.server_url,
        "headers": tool.transport.headers or None,
        "authorization": tool.transport.authorization,
        "allowed_tools": tool.allowed_tools,
        "require_approval": approval if isinstance(approval, str) else approval.model_dump(exclude_none=True),
        "required": tool.required or None,
        "credential_id": tool.credential_id,
    }
    return {name: value for name, value in args.items() if value is not None}


def search_args(tool: AgentWebSearchTool) -> dict[str, Any]:
    """Return the args of the web search that are not its defaults."""
    args = {
        "allowed_domains": tool.allowed_domains,
        "search_context_size": None if tool.context_size == "medium" else tool.context_size,
        "user_location": tool.location.model_dump(exclude_none=True) if tool.location else None,
        "mode": None if tool.mode == "live" else tool.mode,
    }
    return {name: value for name, value in args.items() if value is not None}


def from_tools(config: AgentConfig, *, shows_headers: bool) -> list[AgentToolObject]:
    """Convert an agent's tools. Only saved agents show headers of MCP servers."""
    functions: list[AgentToolObject] = [from_client_tool(tool) for tool in config.client_tools]
    return [*functions, *(from_toolgroup(group, shows_headers) for group in config.toolgroups)]


def from_client_tool(tool: ToolDef) -> FunctionToolObject:
    """Convert a function. Parameters of Llama Stack become a JSON schema."""
    schema = tool.input_schema if tool.input_schema is not None else signature_of(tool).parameters
    return FunctionToolObject(name=tool.name, description=tool.description or "", parameters=schema)


def from_toolgroup(group: AgentToolGroup, shows_headers: bool) -> AgentToolObject:
    """Convert a toolgroup. One that no tool of the API stands for is shown as it is."""
    name, args = (group, {}) if isinstance(group, str) else (group.name, group.args)
    approval = None if isinstance(group, str) else group.require_approval
    if name == MCP_SERVER and isinstance(args.get("server_url"), str):
        return from_mcp(args, shows_headers, approval)
    if name == WEB_SEARCH_GROUP and args.keys() <= SEARCH_ARGS:
        return WebSearchToolObject(
            mode=args.get("mode", "live"),
            context_size=args.get("search_context_size", "medium"),
            allowed_domains=args.get("allowed_domains"),
            location=SearchLocation(**args["user_location"]) if args.get("user_location") else None,
            require_approval=approval,
        )
    if name == RAG and args.get("vector_db_ids") and is_plain_search(args):
        most = args.get("query_config", {}).get("max_chunks")
        return FileSearchToolObject(
            vector_store_ids=args["vector_db_ids"], max_num_results=most, require_approval=approval
        )
    if name == CODE_GROUP and not args:
        return CodeToolObject(require_approval=approval)
    if name == IMAGE_GROUP and not args:
        return ImageToolObject(require_approval=approval)
    return ToolgroupToolObject(name=name, args=without_masked(mask(args)), require_approval=approval)


def is_plain_search(args: dict[str, Any]) -> bool:
    """Return whether a search has no args that `file_search` lacks."""
    config = args.get("query_config", {})
    return (
        args.keys() <= {"vector_db_ids", "query_config"}
        and isinstance(config, dict)
        and config.keys() <= {"max_chunks"}
    )


def from_mcp(args: dict[str, Any], shows_headers: bool, added: Approval | None = None) -> McpToolObject:
    """Convert the args of an MCP server, without its credentials. `added` is the approval beside them."""
    approval = args.get("require_approval", "never")
    if added not in (None, "never"):
        approval = added if approval == "never" else "always"  # no field can say both
    return McpToolObject(
        server_label=str(args.get("server_label", "")),
        transport=McpTransportObject(
            server_url=mask_url(args["server_url"], endpoint=True),
            headers=public_headers(args.get("headers") or {}) if shows_headers else None,
        ),
        allowed_tools=args.get("allowed_tools"),
        credential_id=args.get("credential_id"),
        required=bool(args.get("required", False)),
        require_approval=None if approval == "never" else approval,
    )


def public_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers that are no credentials by their names and values."""
    return {
        name: value for name, value in headers.items() if not (is_secret(name) or is_key(value) or is_masked(value))
    }


def without_masked(value: Any) -> Any:
    """Return masked args without the credentials that were masked."""
    if isinstance(value, dict):
        return {name: without_masked(part) for name, part in value.items() if not is_masked(part)}
    return [without_masked(part) for part in value if not is_masked(part)] if isinstance(value, list) else value


def is_masked(value: Any) -> bool:
    return isinstance(value, str) and MASK in value
