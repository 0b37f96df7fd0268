"""Tools of MCP servers (Model Context Protocol) of any revision (`servers.py`), over HTTP.

A turn needs the list of tools before the model is called, so a listing is a wait of the user. Lists are kept in the
warm process, for each tenant, endpoint and headers (a server may show each caller other tools):

    fresh                   used without a request, for `list_seconds`
    stale                   a new list is requested, for REFRESH_SECONDS at most; the old one is used if that fails
    unknown                 requested for up to LIST_SECONDS; a failure is the request's
    failed slowly           not requested again for `retry_seconds`: callers wait for a server that hangs only once
    a tool is unknown       the list becomes stale: the server has changed its tools

Refused credentials are never hidden behind an old list, because the caller can correct them. A call has a
connection of its own, so that nothing runs between two invocations of this function.
"""

import asyncio
import hashlib
import json
import logging
import time
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError

from stint.caller import find_tenant
from stint.dataclasses import replace
from stint.domain.call_depth import DEPTH_KEY
from stint.domain.errors import InvalidRequest, StintError, ToolUnauthorized, ToolUnavailable, UnresolvableURL
from stint.domain.inference import ToolSignature
from stint.domain.mcp_servers import McpAccess
from stint.domain.validation import describe_faults
from stint.net.guard import Guard
from stint.tools.definitions import LONGEST_TIMEOUT
from stint.tools.depth_headers import next_depth
from stint.tools.headers import fold, read_headers
from stint.tools.list_budget import list_budget
from stint.tools.mcp.content import read_result
from stint.tools.mcp.input_requests import INPUT_REQUIRED, asks_nothing, read_question
from stint.tools.mcp.lists import ToolLists
from stint.tools.mcp.results import OfferedTool, ServerResult
from stint.tools.mcp.servers import McpPlace, McpServers
from stint.tools.mcp.session import McpFailure, host_of
from stint.tools.mcp.stateless import (
    HEADER_MISMATCH,
    METHOD_NOT_FOUND,
    MOST_PAGES,
    MOST_TOOLS,
    UNSUPPORTED_REVISION,
    NotStateless,
    ServerToolList,
    StatelessCall,
    StatelessClient,
    StatelessRefusal,
    signature_of,
)
from stint.tools.outcomes import MAX_ANSWER_BYTES, TIMEOUT, failure, timed_out, too_large
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.types import CallToolResult


logger = logging.getLogger(__name__)

LIST_SECONDS = 20.0
"""Maximum seconds of a listing. API Gateway waits 29 s for the response to the caller."""
INVALID_PARAMS = -32602
REFRESH_SECONDS = 3.0
"""Maximum seconds of a listing if there is a stale list to use."""
MOST_ROUNDS = 10
"""Maximum repetitions of a call whose server only wants to be asked again."""
SLOW_SECONDS = 1.0
"""A failure within these seconds is not cached, because the next attempt costs little."""


Seconds = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)]


class McpArgs(McpAccess):
    """The args of a toolgroup, with the access to its tools.

    `timeout` is in seconds, for one listing or call; `timeouts` has timeouts of single tools by name.
    `repeatable` says whether calls of its tools may be sent again after an interruption. By default the server's hints
    decide.
    """

    timeout: Seconds | None = None
    timeouts: dict[str, Seconds] = Field(default_factory=dict)
    repeatable: bool | None = None

    def timeout_of(self, tool_name: str) -> float | None:
        """Return the timeout of a call; None if the registration has none."""
        return self.timeouts.get(tool_name, self.timeout)

    def apply(self, tools: list[ToolSignature]) -> list[ToolSignature]:
        """Return the listed tools that may be called, as the toolgroup has them."""
        if self.allowed_tools is not None:
            tools = [tool for tool in tools if self.allows(tool.name)]
        if self.repeatable is None:
            return tools
        return [replace(tool, repeatable=self.repeatable) for tool in tools]


def read_args(toolgroup: Toolgroup) -> McpArgs:
    """Read a registration's args. Raises InvalidRequest with the location of the error."""
    try:
        return McpArgs.model_validate(toolgroup.config)
    except ValidationError as error:
        message = f"The args of the toolgroup {toolgroup.toolgroup_id!r} are malformed: {describe_faults(error)}"
        raise InvalidRequest(message, param="args") from None


class McpTools:
    """Runs the tools of MCP servers.

    A registration has `mcp_endpoint: {"uri": "https://..."}`, and may have args (see `McpArgs`). Each request may have
    the caller's credentials in `provider_data["mcp_headers"]`: `{uri: {header: value}}`, or Llama Stack's
    `{uri: ["header: value"]}`.

    A list of tools is fresh for `list_seconds`, for a tenant and the same headers, or until the server does not know
    one of its tools. If a server does not answer, its stale list is used. `timeout` is in seconds, for one listing or
    call; `max_bytes` limits all responses of one of them. A slow failure is cached for `retry_seconds`.
    """

    def __init__(
        self,
        guard: Guard,
        *,
        timeout: float = TIMEOUT,
        list_seconds: float = 300.0,
        retry_seconds: float = 30.0,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._guard = guard
        self._timeout = timeout
        self._lists = ToolLists(list_seconds, retry_seconds)
        self._servers = McpServers(guard, self._lists, max_bytes=max_bytes)

    async def check(self, toolgroup: Toolgroup, /) -> None:
        """Check the args, and that the endpoint is allowed; see the port."""
        read_args(toolgroup)
        url, _ = read_endpoint(toolgroup, {})
        try:
            await self._guard.check(url)
        except InvalidRequest as error:
            message = f"The toolgroup {toolgroup.toolgroup_id!r} cannot be used: {error.message}"
            raise InvalidRequest(message, code=error.code, param="mcp_endpoint") from error

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        """Return the cached list of any age; see the port."""
        known = self._lists.known(key_of(*read_endpoint(toolgroup, provider_data)))
        return None if known is None else read_args(toolgroup).apply(known)

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        """List a server's tools, from the cache if it is fresh; see the port."""
        return read_args(toolgroup).apply(await self._list(toolgroup, provider_data))

    async def _list(self, toolgroup: Toolgroup, provider_data: dict[str, Any]) -> list[ToolSignature]:
        url, headers = read_endpoint(toolgroup, provider_data)
        key = key_of(url, headers)
        fresh, old = self._lists.fresh(key), self._lists.known(key)
        if fresh is not None:
            return fresh
        failed = self._lists.failure(key)
        if failed is None:
            timeout = min(read_args(toolgroup).timeout or self._timeout, LIST_SECONDS)
            try:
                return await self._refresh(url, headers, timeout if old is None else min(timeout, REFRESH_SECONDS))
            except ToolUnauthorized:
                raise
            except (ToolUnavailable, UnresolvableURL) as error:
                failed = error
        if old is None:
            # A new error, because the cached one would collect the tracebacks of all who raise it.
            raise type(failed)(failed.message)
        extra = {"toolgroup_id": toolgroup.toolgroup_id, "error": failed.message}
        logger.warning("An MCP server did not list its tools; the old list is used", extra=extra)
        return old

    async def _refresh(self, url: str, headers: dict[str, str], timeout: float) -> list[ToolSignature]:
        """Request a server's tools, and cache the list or the failure."""
        key, began = key_of(url, headers), time.monotonic()
        try:
            listed = await self._ask(McpPlace(key, url, headers), timeout)
        except ToolUnauthorized:
            raise
        except (ToolUnavailable, UnresolvableURL, asyncio.CancelledError) as error:
            # Cancelled as well: a caller whose own time ran out has waited for the same server.
            seconds = time.monotonic() - began
            if seconds >= SLOW_SECONDS:
                slow = f"The MCP server at {host_of(url)} did not list its tools within {seconds:.0f} s"
                self._lists.fail(key, error if isinstance(error, StintError) else ToolUnavailable(slow))
            raise
        self._lists.put(key, listed.tools, listed.seconds)
        return listed.tools

    async def _ask(self, place: McpPlace, timeout: float) -> ServerToolList:
        url = place.url
        try:
            return await self._servers.run(place, StatelessClient.list_all, list_all, timeout, budget=list_budget())
        except TimeoutError as error:
            raise ToolUnavailable(
                f"The MCP server at {host_of(url)} did not list its tools within {timeout:g} s"
            ) from error
        except McpFailure as error:
            raise ToolUnavailable(f"The MCP server at {host_of(url)} does not list its tools: {error}") from error

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        """Call a tool; see the port."""
        url, headers = read_endpoint(toolgroup, invocation.provider_data)
        timeout = read_args(toolgroup).timeout_of(invocation.tool_name) or self._timeout
        place = McpPlace(key_of(url, headers), url, headers)

        async def call(session: "ClientSession") -> ToolOutcome:
            if invocation.answered is not None:
                return failure("The MCP server speaks an older revision now, so it does not get the user's answer.")
            result = await call_tool(session, invocation)
            return read_result(ServerResult.model_validate(result.model_dump(mode="json", by_alias=True)))

        async def exchange(client: StatelessClient) -> ToolOutcome:
            result = await self._call(client, place.key, invocation)
            asks = result.result_type == INPUT_REQUIRED
            return read_question(result, can_ask=can_ask(invocation)) if asks else read_result(result)

        try:
            outcome = await self._servers.run(place, exchange, call, timeout)
        except TimeoutError:
            return timed_out(timeout)
        except McpFailure as error:
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                self._lists.expire(place.key)
            return failure(f"The MCP server refused the call: {error}")
        except InvalidRequest as error:
            if error.code == "url_too_large":
                return too_large(f"The call failed: {error.message}.")
            raise
        if outcome.error and "unknown tool" in str(outcome.content).lower():
            self._lists.expire(place.key)
        return outcome

    async def _call(self, client: StatelessClient, key: str, invocation: Invocation) -> ServerResult:
        """Call a tool without a session, with the headers that its schema asks for.

        A server that misses one has not run the tool: its list is read then, because this process has none or an old
        one, and the call is sent again.
        """
        answered = invocation.answered
        call = StatelessCall(
            invocation.tool_name,
            invocation.arguments,
            self._find_schema(key, invocation.tool_name),
            can_ask=can_ask(invocation),
            answers=answered.responses if answered is not None else None,
            state=answered.state if answered is not None else None,
        )
        try:
            result = await client.call(call)
        except StatelessRefusal as refusal:
            if refusal.code != HEADER_MISMATCH:
                raise
            listed = await client.list_all()
            self._lists.put(key, listed.tools, listed.seconds)
            call = replace(call, schema=self._find_schema(key, invocation.tool_name))
            result = await client.call(call)
        for rounds in range(MOST_ROUNDS):
            if not asks_nothing(result):
                break
            await asyncio.sleep(min(0.05 * 2**rounds, 0.4))
            try:
                result = await client.call(replace(call, answers=None, state=result.request_state))
            except NotStateless:  # the tool has begun, so the call does not start again in a session
                raise McpFailure(UNSUPPORTED_REVISION, "the server changed its revision during the call") from None
        return result

    def _find_schema(self, key: str, tool_name: str) -> dict[str, Any] | None:
        known = self._lists.known(key) or ()
        return next((tool.parameters for tool in known if tool.name == tool_name), None)


def can_ask(invocation: Invocation) -> bool:
    """Return whether somebody can answer what a call asks: the client of a turn."""
    return invocation.session is not None


async def list_all(session: "ClientSession") -> ServerToolList:
    """List the tools in a session, page by page, up to 1,000.

    Raises:
        McpFailure: there are more than 50 pages.
    """
    from mcp.types import PaginatedRequestParams  # noqa: PLC0415 - imported when first used

    tools: list[ToolSignature] = []
    cursor: str | None = None
    pages = 0
    while len(tools) < MOST_TOOLS:
        pages += 1
        if pages > MOST_PAGES:
            raise McpFailure(0, f"its list has more than {MOST_PAGES} pages")
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        listed = (OfferedTool.model_validate(tool.model_dump(mode="json", by_alias=True)) for tool in page.tools)
        tools += map(signature_of, listed)
        cursor = page.nextCursor
        if not cursor or not page.tools:
            break
    return ServerToolList(tools)


async def call_tool(session: "ClientSession", invocation: Invocation) -> "CallToolResult":
    """Send tools/call. The session's own `call_tool` would first list all tools, to check structured results."""
    from mcp import types  # noqa: PLC0415 - imported when first used

    meta = types.RequestParams.Meta.model_validate({DEPTH_KEY: next_depth()})
    params = types.CallToolRequestParams(name=invocation.tool_name, arguments=invocation.arguments, _meta=meta)
    request = types.ClientRequest(types.CallToolRequest(params=params))
    return await session.send_request(request, types.CallToolResult)


def read_endpoint(toolgroup: Toolgroup, provider_data: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return a toolgroup's URL, and the caller's headers for it with its own.

    Raises:
        InvalidRequest: the toolgroup has no endpoint, or `mcp_headers` is malformed.
    """
    url = toolgroup.mcp_endpoint
    if not url:
        raise InvalidRequest(
            f"The toolgroup {toolgroup.toolgroup_id!r} has no mcp_endpoint: register it with one", param="mcp_endpoint"
        )
    given = provider_data.get("mcp_headers") or {}
    if not isinstance(given, dict):
        message = 'The mcp_headers in the provider data must be {"<URL of the endpoint>": {...}}'
        raise InvalidRequest(message, param="mcp_headers")
    ours = next((headers for uri, headers in given.items() if uri.rstrip("/") == url.rstrip("/")), None)
    return url, add_headers(toolgroup, read_headers(ours, "mcp_headers"))


def add_headers(toolgroup: Toolgroup, given: dict[str, str]) -> dict[str, str]:
    """Return the caller's headers with those of the toolgroup, which replace others of the same name."""
    if toolgroup.config.keys().isdisjoint(("headers", "authorization")):
        return given
    own = read_headers(read_args(toolgroup).sent_headers, "headers")
    names = set(map(fold, own))
    return {name: value for name, value in given.items() if fold(name) not in names} | own


def key_of(url: str, headers: dict[str, str]) -> str:
    """Return a cache key of a tenant, an endpoint and its headers that does not contain credentials."""
    parts = sorted((name.lower(), value) for name, value in headers.items())
    return hashlib.sha256(json.dumps([find_tenant(), url, parts]).encode()).hexdigest()
