"""Sessions with MCP servers, over streamable HTTP or the older HTTP+SSE transport.

A session lasts for one listing or one call. Between two invocations Lambda freezes the process, so a connection that
stays open would be dead when it is next used, and the `mcp` package keeps tasks with it.

The transport of an endpoint is not declared anywhere. It is found as the specification says:

    POST is answered                          streamable HTTP
    4xx without a JSON-RPC error, at first    the older one is tried: a GET that must start an event stream
    4xx with one, or 401, 403, 429 ...        the server understands the request and refuses it: the error
    the GET fails, too                        an error that names both answers

The package loses some failures of its requests in background tasks, and would wait forever. `Watch` sits below it, sees
each response, and ends the session's timeout early at the first failure, which is the one that is raised. An error
after the exchange has its result belongs to the disconnection, and is ignored.
"""

import asyncio
import contextlib
import importlib.util
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from stint.domain.errors import InvalidRequest, StintError, ToolUnauthorized, ToolUnavailable, UnresolvableURL
from stint.net.guard import Guard
from stint.net.urls import parse_url
from stint.tools.depth_headers import depth_headers, without_depth
from stint.tools.list_budget import MAX_LIST_BYTES, ListBudget
from stint.tools.mcp.answers import ReceiveBudget
from stint.tools.mcp.refusals import McpRequestRefused, shorten_reason
from stint.tools.mcp.watch import Watch
from stint.tools.port import SERVER_REFUSED

if TYPE_CHECKING:
    from mcp.client.session import ClientSession

T = TypeVar("T")
Conversation = Callable[["ClientSession"], Awaitable[T]]

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions with sessions, which the `mcp` package speaks."""
REVISION = "2026-07-28"
"""The revision without sessions (`stateless.py`)."""

PASSING = frozenset({401, 403, 407, 408, 429})
"""Statuses that concern the caller or are temporary, whatever the body says."""

NO_ENDPOINT = frozenset({404, 405})
"""Statuses that servers and gateways answer to any request at a wrong URL, often with a text of their own."""


class McpFailure(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpSessions:
    """Makes one session per connection, so that nothing runs between two invocations of a function.

    The transport of an endpoint is detected as specified (Transports, "Backwards Compatibility"): a POST first, and
    after a 4xx without a JSON-RPC error a GET that must start an event stream. The process caches the result.
    """

    def __init__(self, guard: Guard, *, max_bytes: int) -> None:
        self._guard = guard
        self._max_bytes = max_bytes
        self._sse_endpoints: set[str] = set()

    async def run_session(
        self,
        url: str,
        headers: dict[str, str],
        conversation: Conversation[T],
        timeout: float,
        budget: ListBudget | None = None,
    ) -> T:
        """Connect, initialize, run the exchange, and disconnect; `timeout` (seconds) covers all of it.

        A `budget` counts the bytes of a listing, which has a lower limit than a call.

        Raises:
            TimeoutError: it took longer than the timeout.
            McpFailure: the server answered with a JSON-RPC error.
            ToolUnavailable: the server cannot be reached, refuses the credentials, or breaks the protocol.
            InvalidRequest: the guard refuses the URL, its host does not resolve, the server refuses to initialize, or
                the answer is too large.
        """
        parse_url(url)
        deadline = asyncio.get_running_loop().time() + timeout
        first: McpRequestRefused | None = None
        if url not in self._sse_endpoints:
            try:
                return await self._attempt(url, headers, conversation, deadline, budget=budget, sse=False)
            except McpRequestRefused as refused:
                if not may_be_of_transport(refused):
                    raise explain(url, refused) from refused
                first = refused
        try:
            result = await self._attempt(url, headers, conversation, deadline, budget=budget, sse=True)
        except McpRequestRefused as refused:
            # The server may have been replaced by one with the newer transport: the next session begins with a POST
            # again.
            self._sse_endpoints.discard(url)
            raise explain(url, refused, first) from refused
        self._sse_endpoints.add(url)
        return result

    async def _attempt(
        self,
        url: str,
        headers: dict[str, str],
        conversation: Conversation[T],
        deadline: float,
        budget: ListBudget | None,
        *,
        sse: bool,
    ) -> T:
        prepare_mcp()
        from mcp.client.session import ClientSession  # noqa: PLC0415 - imported when first used
        from mcp.types import Implementation  # noqa: PLC0415

        max_bytes = self._max_bytes if budget is None else min(self._max_bytes, MAX_LIST_BYTES)
        received = ReceiveBudget(host_of(url), max_bytes, budget)
        watch = Watch(self._guard.transport(max_bytes), ("GET", "POST") if sse else ("POST",), received)
        seconds = max(deadline - asyncio.get_running_loop().time(), 0.001)
        sent = {"Accept-Encoding": "gzip", **without_depth(headers), **depth_headers()}
        # httpx's timeout is later than the deadline, whose error says what took too long.
        client = httpx.AsyncClient(transport=watch, timeout=seconds + 1, headers=sent, trust_env=False)
        results: list[T] = []
        try:
            async with asyncio.timeout_at(deadline) as clock:
                watch.stop = lambda: expire(clock)
                async with (
                    open_streams(url, client, sse=sse) as (read, write),
                    ClientSession(read, write, client_info=Implementation(name="stint", version="1")) as session,
                ):
                    await initialize(session, url)
                    results.append(await conversation(session))
        except Exception as error:
            # The result has arrived: what fails after it is the end of the connection.
            if not results:
                raise translate(url, watch.failure or first_of(error)) from error
        return results[0]


def prepare_mcp() -> None:
    """Make the modules of `mcp.client` importable alone. Call this before importing one.

    The package's `__init__` imports its server, and so uvicorn, jsonschema and 170 other modules: 110 ms and 8 MB in a
    function that is only a client. It has no effect if the whole package is already imported.
    """
    # Its log lines contain whole messages, with arguments and results, and tracebacks of reported errors.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if "mcp" in sys.modules:
        return
    spec = importlib.util.find_spec("mcp")
    if spec is None:
        raise ModuleNotFoundError("No module named 'mcp'")
    sys.modules["mcp"] = importlib.util.module_from_spec(spec)


async def initialize(session: "ClientSession", url: str) -> None:
    """Initialize a session. Raises InvalidRequest if the server refuses it, or answers with another revision."""
    from mcp.shared.exceptions import McpError  # noqa: PLC0415

    try:
        await session.initialize()
    except McpError as error:
        raise refuse_server(url, error.error.message) from error
    except RuntimeError as error:  # the package has no class of its own for this
        if "protocol version" not in str(error):
            raise
        raise refuse_server(url, str(error)) from error


def refuse_server(url: str, reason: str) -> InvalidRequest:
    """Make the error of a server that refuses to initialize a session. Another attempt would fail, too."""
    return InvalidRequest(
        f"The MCP server at {host_of(url)} refuses to initialize a session: {shorten_reason(reason)}. "
        f"Stint speaks the revisions {', '.join(HANDSHAKE_REVISIONS)} and, without sessions, {REVISION} of MCP.",
        code=SERVER_REFUSED,
    )


@contextlib.asynccontextmanager
async def open_streams(url: str, client: httpx.AsyncClient, *, sse: bool) -> AsyncIterator[tuple[Any, Any]]:
    """Open the message streams of a transport. The client is closed with them."""
    if sse:
        from mcp.client.sse import sse_client  # noqa: PLC0415

        async with sse_client(url, httpx_client_factory=lambda *_, **__: client) as streams:
            yield streams
    else:
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

        async with client, streamable_http_client(url, http_client=client) as (read, write, _):
            yield read, write


def expire(clock: asyncio.Timeout) -> None:
    """Expire a timeout now, unless it is over."""
    with contextlib.suppress(RuntimeError):
        clock.reschedule(asyncio.get_running_loop().time())


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def translate(url: str, error: BaseException) -> Exception:
    """Convert a failure of the session to an error."""
    from mcp.shared.exceptions import McpError  # noqa: PLC0415

    if isinstance(error, McpError):
        return McpFailure(error.error.code, error.error.message)
    return translate_failure(url, error)


def translate_failure(url: str, error: BaseException) -> Exception:
    """Convert a failure of a request to an error."""
    match error:
        case UnresolvableURL():
            return error
        case InvalidRequest(code="url_unavailable"):
            return ToolUnavailable(error.message)
        case McpRequestRefused() | TimeoutError() | StintError() | McpFailure():
            return error
        case httpx.TimeoutException():
            return TimeoutError()
        case httpx.HTTPStatusError():
            return ToolUnavailable(f"The MCP server at {host_of(url)} answered {error.response.status_code}")
        case httpx.HTTPError():
            return ToolUnavailable(f"The MCP server at {host_of(url)} cannot be reached ({type(error).__name__})")
        case _:
            return ToolUnavailable(f"The MCP server at {host_of(url)} violated the protocol ({type(error).__name__})")


def may_be_of_transport(refused: McpRequestRefused) -> bool:
    """Return whether a server may refuse a request because it has the older transport."""
    client_error = 400 <= refused.status < 500 and refused.status not in PASSING
    return refused.opening and client_error and not refused.reason.message


def explain(url: str, refused: McpRequestRefused, earlier: McpRequestRefused | None = None) -> StintError:
    """Return why a server refused the request, without the refused headers. `earlier` is the refusal of a POST."""
    if refused.status in (401, 403):
        status = HTTPStatus(refused.status)
        unauthorized = ToolUnauthorized(
            f"The MCP server at {host_of(url)} refuses the credentials ({status} {status.phrase}): send them in "
            'X-LlamaStack-Provider-Data as {"mcp_headers": {"<URL of the endpoint>": {"Authorization": "Bearer ..."}}}'
            ", as `authorization` or `headers` of the MCP tool of a response or a session, or store them in a vault"
        )
        unauthorized.status = refused.status
        return unauthorized
    if refused.reason.message and refused.status not in PASSING:
        return refuse_server(url, refused.reason.message)
    if earlier and earlier.reason.remark and earlier.status not in NO_ENDPOINT:
        return refuse_server(url, earlier.reason.remark)
    answers = " and ".join(str(one) for one in (earlier, refused) if one)
    return ToolUnavailable(f"The MCP server at {host_of(url)} answered {answers}{advice_on(refused)}")


def advice_on(refused: McpRequestRefused) -> str:
    """Return what a status means, for the end of a message; empty if it says so itself."""
    if refused.status in (400, 404, 405):
        return ": check the endpoint's URL"
    if refused.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ": the server, or a gateway in front of it, has failed"
    return f": {shorten_reason(refused.reason.message)}" if refused.reason.message else ""


def host_of(url: str) -> str:
    """Return a server's name without path and query, which may contain keys."""
    return httpx.URL(url).netloc.decode()
