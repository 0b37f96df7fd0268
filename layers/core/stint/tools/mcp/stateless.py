"""Calls of MCP servers of the revision 2026-07-28, which has no sessions: one POST for each request.

What a session knew before, each request says: the revision, the client and what it can do are in `_meta`, and the
revision, the method and the tool's name in headers, too. The answer is a JSON document, or an event stream that ends
with it. Requests in that stream do not exist any more: a server that needs something answers with `input_required`.

This is a client of our own, because the `mcp` package that has the revision takes a second of CPU time to import, and
cannot be installed beside the one for the older revisions (docs/decisions.md, entry 160).
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NoReturn, TypeVar

import httpx
from httpx_sse import EventSource
from pydantic import BaseModel, ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.call_depth import DEPTH_KEY
from stint.domain.errors import StintError, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.json_text import make_storable, parse_json
from stint.net.guard import Guard
from stint.net.urls import parse_url
from stint.tools.depth_headers import depth_headers, next_depth, without_depth
from stint.tools.headers import fold
from stint.tools.list_budget import MAX_LIST_BYTES, ListBudget
from stint.tools.mcp.answers import AnswerCheck, ReceiveBudget
from stint.tools.mcp.param_headers import InvalidMark, encode_value, find_marks, param_headers
from stint.tools.mcp.refusals import McpRequestRefused, read_reason, shorten_reason
from stint.tools.mcp.results import DiscoveredServer, OfferedTool, OfferedTools, ServerResult
from stint.tools.mcp.session import (
    HANDSHAKE_REVISIONS,
    PASSING,
    REVISION,
    McpFailure,
    explain,
    host_of,
    refuse_server,
    translate_failure,
)

META = "io.modelcontextprotocol/"
CLIENT = {"name": "stint", "version": "1"}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
"""The only capability: a client of a turn can be asked. Stint offers servers no model and no files."""

UNSUPPORTED_REVISION = -32022
HEADER_MISMATCH = -32020
METHOD_NOT_FOUND = -32601
NO_SESSION = frozenset({METHOD_NOT_FOUND, -32600, -32000})
"""Codes with which servers of older revisions refuse a request that no session has. A tool may fail with them, too."""
NO_SESSION_STATUSES = frozenset({400, 404, 405})
"""Statuses with which they refuse it without a JSON-RPC error."""

CALL = "tools/call"
DISCOVERY_SECONDS = 5.0
"""Maximum seconds to wait for the revision of a server. An older one may leave the question without an answer."""

MOST_TOOLS, MOST_PAGES = 1000, 50
OWN_HEADERS = frozenset({"accept", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"})

R = TypeVar("R", bound=BaseModel)


class NotStateless(Exception):
    """The server does not serve this revision. No tool has run."""


class StatelessRefusal(McpFailure):
    """The server refused a request with an HTTP error that has a JSON-RPC error, before any tool ran.

    `supported` are the revisions that it names.
    """

    supported: tuple[str, ...] = ()


@dataclass(slots=True)
class ServerToolList:
    """Listed tools, and the seconds for which the server lets clients use the list."""

    tools: list[ToolSignature] = field(default_factory=list)
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class StatelessCall:
    """A call of a tool. `schema` is that of its arguments, if it is known.

    `can_ask`: its client can answer questions. `answers` and `state` continue a call that has asked some.
    """

    name: str
    arguments: Mapping[str, Any]
    schema: Mapping[str, Any] | None = None
    can_ask: bool = False
    answers: Mapping[str, Any] | None = None
    state: str | None = None


class StatelessClient:
    """Sends requests to one server, with one connection."""

    def __init__(self, url: str, client: httpx.AsyncClient, received: ReceiveBudget) -> None:
        self._url = url
        self._client = client
        self._received = received
        self._number = 0

    async def discover(self) -> bool:
        """Return whether the server serves this revision. Raises InvalidRequest if it serves none that Stint does."""
        try:
            found = DiscoveredServer.model_validate(await self._request("server/discover", {}))
        except StatelessRefusal as refusal:
            others = refusal.supported and set(HANDSHAKE_REVISIONS).isdisjoint(refusal.supported)
            if refusal.code == UNSUPPORTED_REVISION and others:
                raise refuse_server(self._url, str(refusal)) from refusal
            return False
        except (McpFailure, McpRequestRefused, ValueError):
            return False
        return REVISION in found.supported_versions

    async def is_lost(self) -> bool:
        """Return whether the server says that it does not serve this revision any more. Silence says nothing."""
        try:
            async with asyncio.timeout(DISCOVERY_SECONDS):
                found = DiscoveredServer.model_validate(await self._request("server/discover", {}))
        except McpFailure:
            return True
        except McpRequestRefused as refused:
            return is_client_error(refused)
        except (TimeoutError, ValidationError, StintError, httpx.HTTPError):
            return False
        return REVISION not in found.supported_versions

    async def list_all(self) -> ServerToolList:
        """List the tools, page by page. Raises McpFailure, McpRequestRefused, NotStateless."""
        listed, cursor, pages = ServerToolList(), None, 0
        while len(listed.tools) < MOST_TOOLS:
            pages += 1
            if pages > MOST_PAGES:
                raise McpFailure(0, f"its list has more than {MOST_PAGES} pages")
            page = await self._ask("tools/list", {"cursor": cursor} if cursor else {}, OfferedTools)
            listed.tools += [signature_of(tool) for tool in page.tools if is_offered(tool)]
            seconds = page.ttl_ms / 1000
            listed.seconds = seconds if listed.seconds is None else min(listed.seconds, seconds)
            cursor = page.next_cursor
            if not cursor or not page.tools:
                break
        return listed

    async def call(self, call: StatelessCall) -> ServerResult:
        """Call a tool. Raises McpFailure, McpRequestRefused, NotStateless."""
        params: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments)}
        if call.answers is not None:
            params["inputResponses"] = dict(call.answers)
        if call.state is not None:
            params["requestState"] = call.state
        try:
            headers = param_headers(call.schema, call.arguments) if call.schema is not None else {}
        except InvalidMark:
            headers = {}
        return await self._ask(CALL, params, ServerResult, headers=headers, can_ask=call.can_ask)

    async def _ask(
        self,
        method: str,
        params: dict[str, Any],
        kind: type[R],
        headers: Mapping[str, str] | None = None,
        *,
        can_ask: bool = False,
    ) -> R:
        try:
            result = await self._request(method, params, headers, can_ask=can_ask)
            return kind.model_validate(result)
        except (McpFailure, McpRequestRefused) as refused:
            if is_of_revision(refused):
                raise NotStateless from refused
            if method == CALL:
                raise await self._failure_of_call(refused) from refused
            if may_be_of_revision(refused) or is_client_error(refused):
                raise NotStateless from refused
            raise
        except ValidationError:
            raise self._violation("an invalid result") from None

    async def _failure_of_call(self, refused: McpFailure | McpRequestRefused) -> Exception:
        """Return what the refusal of a call means. The tool may have run, unless the server is an older one now."""
        if may_be_of_revision(refused) and await self.is_lost():
            return NotStateless()
        if isinstance(refused, McpRequestRefused) and is_client_error(refused):
            reason = refused.reason.message or refused.reason.remark
            return McpFailure(0, f"it answered {refused.status}{': ' if reason else ''}{shorten_reason(reason)}")
        return refused

    async def _request(
        self,
        method: str,
        params: dict[str, Any],
        headers: Mapping[str, str] | None = None,
        *,
        can_ask: bool = False,
    ) -> Any:
        """Send a request, and return its result."""
        self._number += 1
        meta = {
            f"{META}protocolVersion": REVISION,
            f"{META}clientInfo": CLIENT,
            f"{META}clientCapabilities": FORMS if can_ask else {},
            DEPTH_KEY: next_depth(),
        }
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params | {"_meta": meta}}
        named = {"Mcp-Name": encode_value(params["name"])} if "name" in params else {}
        sent = {**(headers or {}), "Mcp-Method": method, **named}
        async with self._client.stream("POST", self._url, content=json.dumps(request), headers=sent) as response:
            if response.status_code not in (200, 201):
                await self._refuse(response)
            answer = await self._read(response)
        if "error" in answer:
            error = answer["error"] if isinstance(answer["error"], dict) else {}
            raise McpFailure(int_of(error.get("code")), str(error.get("message") or "without a reason"))
        return answer.get("result")

    async def _refuse(self, response: httpx.Response) -> NoReturn:
        """Raise the refusal of a request: that of its JSON-RPC error, or of its status."""
        reason = await read_reason(response)
        if reason.code and 400 <= response.status_code < 500 and response.status_code not in PASSING:
            refusal = StatelessRefusal(reason.code, reason.message or "without a reason")
            refusal.supported = reason.supported
            raise refusal
        raise McpRequestRefused("POST", response.status_code, opening=True, reason=reason)

    async def _read(self, response: httpx.Response) -> dict[str, Any]:
        """Return the answer in a response. What an event stream has before it is left out."""
        kind = response.headers.get("content-type", "")
        check = AnswerCheck(self._received, kind)

        async def read_chunks() -> AsyncIterator[bytes]:
            async for chunk in response.aiter_bytes():
                check.feed(chunk)
                yield chunk
            check.finish()

        if not kind.lower().startswith("text/event-stream"):
            return self._answer_of(b"".join([chunk async for chunk in read_chunks()]))
        copy = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=read_chunks())
        async with aclosing(EventSource(copy).aiter_sse()) as events:
            async for event in events:
                if event.data and "method" not in (answer := self._answer_of(event.data)):
                    return answer
        raise self._violation("an event stream without an answer")

    def _answer_of(self, text: str | bytes) -> dict[str, Any]:
        try:
            document = parse_json(text)
        except ValueError:
            raise self._violation("an answer that is no JSON") from None
        if not isinstance(document, dict):
            raise self._violation("an answer that is no JSON-RPC")
        if "method" not in document and document.get("id") not in (self._number, None):
            raise self._violation("the answer to another request")
        return document

    def _violation(self, what: str) -> "McpViolation":
        return McpViolation(f"The MCP server at {host_of(self._url)} violated the protocol: it sent {what}")


class McpViolation(ToolUnavailable, ValueError):
    """A server's answer is not of the protocol."""


@asynccontextmanager
async def open_client(
    guard: Guard, url: str, headers: Mapping[str, str], max_bytes: int, deadline: float, budget: ListBudget | None
) -> AsyncIterator[StatelessClient]:
    """Open a client of a server, until a time of the event loop's clock. The `budget` is that of a listing.

    Raises as `McpSessions.run_session`, and NotStateless.
    """
    parse_url(url)
    max_bytes = max_bytes if budget is None else min(max_bytes, MAX_LIST_BYTES)
    received = ReceiveBudget(host_of(url), max_bytes, budget)
    seconds = max(deadline - asyncio.get_running_loop().time(), 0.001)
    given = {name: value for name, value in without_depth(dict(headers)).items() if not is_own(name)}
    own = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": REVISION,
        **depth_headers(),
    }
    client = httpx.AsyncClient(  # httpx's timeout is later than the deadline, whose error says what took too long
        transport=guard.transport(max_bytes),
        timeout=seconds + 1,
        headers={"Accept-Encoding": "gzip", **given, **own},
        trust_env=False,
    )
    try:
        async with asyncio.timeout_at(deadline), client:
            yield StatelessClient(url, client, received)
    except McpRequestRefused as refused:
        raise explain(url, refused) from refused
    except (httpx.HTTPError, StintError) as error:
        translated = translate_failure(url, error)
        if translated is error:
            raise
        raise translated from error


def is_own(name: str) -> bool:
    """Return whether a header is one of the protocol's, which callers and registrations do not replace."""
    folded = fold(name)
    return folded in OWN_HEADERS or folded.startswith("mcp-param-")


def is_offered(tool: OfferedTool) -> bool:
    """Return whether a tool asks for headers that can be sent, or for none."""
    try:
        find_marks(tool.input_schema)
    except InvalidMark:
        return False
    return True


def signature_of(tool: OfferedTool) -> ToolSignature:
    """Return a listed tool. It is repeatable if the server says that it only reads, or that repeating is harmless."""
    hints = tool.annotations
    return ToolSignature(
        tool.name,
        tool.description or tool.title or "",
        make_storable(tool.input_schema),
        repeatable=hints is not None and bool(hints.read_only_hint or hints.idempotent_hint),
        annotations=make_storable(hints.model_dump(exclude_none=True, by_alias=True)) if hints is not None else None,
    )


def is_of_revision(refused: McpFailure | McpRequestRefused) -> bool:
    """Return whether a server refuses a request because of its revision. It has not read anything else."""
    return isinstance(refused, McpFailure) and refused.code == UNSUPPORTED_REVISION


def may_be_of_revision(refused: McpFailure | McpRequestRefused) -> bool:
    """Return whether a server of an older revision could have refused a request in this way."""
    match refused:
        case StatelessRefusal():
            return refused.code in NO_SESSION
        case McpFailure():
            return refused.code == METHOD_NOT_FOUND
        case _:
            return refused.status in NO_SESSION_STATUSES and not refused.reason.message


def is_client_error(refused: McpFailure | McpRequestRefused) -> bool:
    """Return whether a server refuses a request by a status that is neither temporary nor about credentials."""
    return isinstance(refused, McpRequestRefused) and 400 <= refused.status < 500 and refused.status not in PASSING


def int_of(value: Any) -> int:
    return value if isinstance(value, int) else 0
