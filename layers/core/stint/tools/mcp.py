"""Tools of MCP servers (Model Context Protocol), over streamable HTTP and HTTP+SSE."""

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.net.guard import MAX_BYTES, Guard
from stint.tools.headers import read_headers
from stint.tools.mcp_content import read_result
from stint.tools.mcp_session import McpFailure, McpSessions, host_of
from stint.tools.outcomes import TIMEOUT, failure, timed_out
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.types import CallToolResult

MOST_TOOLS = 1000
MOST_LISTS = 200
INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601


class McpTools:
    """Runs the tools of MCP servers.

    A registration has `mcp_endpoint: {"uri": "https://..."}` and no args. A caller's credentials come with each request
    in `provider_data["mcp_headers"]`: `{uri: {header: value}}`, or Llama Stack's `{uri: ["header: value"]}`.

    A list of tools is kept for `list_seconds`, for callers with the same headers only, and dropped when the server
    does not know a tool of it. `timeout` is in seconds, for one listing or call; `max_bytes` is that of one answer.
    """

    def __init__(
        self, guard: Guard, *, timeout: float = TIMEOUT, list_seconds: float = 300.0, max_bytes: int = MAX_BYTES
    ) -> None:
        self._sessions = McpSessions(guard, timeout=timeout, max_bytes=max_bytes)
        self._timeout = timeout
        self._list_seconds = list_seconds
        self._lists: dict[str, tuple[float, list[ToolSignature]]] = {}

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a server's tools, from memory when they were listed a short time ago; see the port."""
        url, headers = read_endpoint(toolgroup, provider_data)
        key = key_of(url, headers)
        expiry, tools = self._lists.get(key, (0.0, []))
        if time.monotonic() < expiry:
            return tools
        try:
            tools = await self._sessions.hold(url, headers, list_all)
        except TimeoutError as error:
            raise ToolUnavailable(
                f"the MCP server at {host_of(url)} did not list its tools within {self._timeout:g} s"
            ) from error
        except McpFailure as error:
            raise ToolUnavailable(f"the MCP server at {host_of(url)} does not list its tools: {error}") from error
        while len(self._lists) >= MOST_LISTS:
            del self._lists[next(iter(self._lists))]
        self._lists[key] = (time.monotonic() + self._list_seconds, tools)
        return tools

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Call a tool in a session of its own; see the port."""
        url, headers = read_endpoint(toolgroup, invocation.provider_data)

        async def call(session: "ClientSession") -> "CallToolResult":
            return await call_tool(session, invocation)

        try:
            result = await self._sessions.hold(url, headers, call)
        except TimeoutError:
            return timed_out(self._timeout)
        except McpFailure as error:
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                self._lists.pop(key_of(url, headers), None)
            return failure(f"The MCP server refused the call: {error}")
        except InvalidRequest as error:
            if error.code == "url_too_large":
                return failure(f"The call failed: {error.message}.")
            raise
        outcome = read_result(result)
        if outcome.error and "unknown tool" in str(outcome.content).lower():
            self._lists.pop(key_of(url, headers), None)
        return outcome


async def list_all(session: "ClientSession") -> list[ToolSignature]:
    """List the tools, page by page, up to 1,000."""
    from mcp.types import PaginatedRequestParams  # noqa: PLC0415 - imported when first used

    tools: list[ToolSignature] = []
    cursor: str | None = None
    while len(tools) < MOST_TOOLS:
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        tools += [
            ToolSignature(tool.name, tool.description or tool.title or "", tool.inputSchema) for tool in page.tools
        ]
        cursor = page.nextCursor
        if not cursor or not page.tools:
            break
    return tools


async def call_tool(session: "ClientSession", invocation: Invocation) -> "CallToolResult":
    """Send tools/call. The session's own `call_tool` would list all tools first, to check structured results."""
    from mcp import types  # noqa: PLC0415 - imported when first used

    params = types.CallToolRequestParams(name=invocation.tool_name, arguments=invocation.arguments)
    request = types.ClientRequest(types.CallToolRequest(params=params))
    return await session.send_request(request, types.CallToolResult)


def read_endpoint(toolgroup: Toolgroup, provider_data: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Give a toolgroup's URL and the headers that the caller sends there.

    Raises:
        InvalidRequest: the toolgroup has no endpoint, or `mcp_headers` is malformed.
    """
    url = toolgroup.mcp_endpoint
    if not url:
        raise InvalidRequest(
            f"the toolgroup {toolgroup.toolgroup_id!r} has no mcp_endpoint: register it with one", param="mcp_endpoint"
        )
    given = provider_data.get("mcp_headers") or {}
    if not isinstance(given, dict):
        raise InvalidRequest('mcp_headers must be {"<URL of the endpoint>": {...}}', param="mcp_headers")
    ours = next((headers for uri, headers in given.items() if uri.rstrip("/") == url.rstrip("/")), None)
    return url, read_headers(ours, "mcp_headers")


def key_of(url: str, headers: dict[str, str]) -> str:
    """Tell endpoints and callers apart without keeping their credentials."""
    parts = sorted((name.lower(), value) for name, value in headers.items())
    return hashlib.sha256(json.dumps([url, parts]).encode()).hexdigest()
