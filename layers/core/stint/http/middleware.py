"""What happens around every request, as plain ASGI: streams pass through untouched."""

import logging
import re
from collections.abc import Callable
from urllib.parse import quote
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.domain.errors import TooLarge, Unexpected
from stint.domain.paging import carried_size
from stint.http.errors import respond
from stint.http.sse import DONE
from stint.observability import Observation
from stint.settings import Settings

logger = logging.getLogger(__name__)

CLIENT_VERSION_HEADER = "x-llamastack-client-version"
CLIENT_NAME = "LlamaStackClient/"
MAX_BUFFERED_BYTES = 5_500_000
ALIAS = "/v1/openai/v1/"


class Observed:
    """Gives every request its ids, its log line and its figures."""

    def __init__(self, app: ASGIApp, function: str) -> None:
        self.app = app
        self.function = function

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        context = scope.get("aws.context")
        observation = Observation(context.aws_request_id if context else str(uuid4()), self.function)
        scope["stint.observation"] = observation
        status = 500

        async def send_with_ids(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = observation.request_id
                headers["x-trace-id"] = trace_id_of(scope)
            await send(message)

        try:
            await self.app(scope, receive, send_with_ids)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            observation.end(scope["method"], route, status)


class ResponseHeaders:
    """Add the headers that every answer carries.

    No browser guesses a type (`nosniff`), and no cache keeps data (`no-store`) unless the route says otherwise.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Slashless:
    """Redirects a path that ends with a slash to the one without, as Llama Stack does, below whatever stage or base."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        name = path.rstrip("/").rpartition("/")[2]
        if not path.endswith("/") or not name:
            return await self.app(scope, receive, send)
        query = scope["query_string"].decode("latin-1")
        location = f"../{quote(name)}{'?' if query else ''}{query}"
        return await Response(status_code=307, headers={"location": location})(scope, receive, send)


class Based:
    """Find the API, and its pages, below the base path of a custom domain, which Mangum leaves in the path."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not scope.get("root_path"):
            base = mapped_base_of(scope)
            if base:
                scope["root_path"] = base
                scope["path"] = base + (scope["path"].removeprefix(base) or "/")
        await self.app(scope, receive, send)


def mapped_base_of(scope: Scope) -> str:
    """Return the part of the path that comes before the one that API Gateway has matched."""
    path: str = scope["path"]
    base, found, _ = path.partition("/v1/")
    if found:
        return base
    event = scope.get("aws.event") or {}
    if event.get("resource") == "/":
        return path.rstrip("/")
    matched = "/" + str((event.get("pathParameters") or {}).get("proxy", ""))
    return path.removesuffix(matched) if path.endswith(matched) else ""


class Aliased:
    """Find the OpenAI API at its second address, which Llama Stack's clients call: /v1/openai/v1 is /v1.

    Where the two differ, routes tell them apart by `is_llama_stack_address`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and ALIAS in scope["path"]:
            scope["stint.path"] = scope["path"]
            scope["path"] = scope["path"].replace(ALIAS, "/v1/", 1)
            scope["stint.llama_stack"] = True
        await self.app(scope, receive, send)


def trace_id_of(scope: Scope) -> str:
    """Give 32 hexadecimal digits: those of the X-Ray trace when there is one."""
    root = re.search(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24})", Headers(scope=scope).get("x-amzn-trace-id", ""))
    return "".join(root.groups()) if root else uuid4().hex


class CrossOrigin:
    """Lets the browsers of one origin read the answers (STINT_CORS_ORIGIN); API Gateway answers the preflights."""

    def __init__(self, app: ASGIApp, load_settings: Callable[[], Settings]) -> None:
        self.app = app
        self.load_settings = load_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self.load_settings().cors_origin

        async def send_with_origin(message: Message) -> None:
            if origin and message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["access-control-allow-origin"] = origin
                headers["access-control-expose-headers"] = "x-request-id, x-trace-id, x-should-retry, retry-after"
                headers.add_vary_header("origin")
            await send(message)

        await self.app(scope, receive, send_with_origin)


class Unmarked:
    """Leave out the `[DONE]` at the end of a stream for Llama Stack's clients.

    Their older versions, Python and Node, read the data of each event as JSON and fail. Llama Stack's own streams have
    no such mark.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_llama_stack_client(Headers(scope=scope)):
            return await self.app(scope, receive, send)

        async def send_unmarked(message: Message) -> None:
            if message.get("body") != DONE:
                await send(message)

        return await self.app(scope, receive, send_unmarked)


def is_llama_stack_client(headers: Headers) -> bool:
    """Return whether a Llama Stack client sent these headers: its Node version has no header of its own."""
    return CLIENT_VERSION_HEADER in headers or CLIENT_NAME in headers.get("user-agent", "")


class FaultsAnswered:
    """Answers a fault of this server in the one error body; the trace is in the log, and nowhere else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, send_noting_start)
        except Exception as error:
            if started:
                raise
            logger.error("Unexpected error", exc_info=error)
            await respond(Unexpected())(scope, receive, send)


class RunOnce:
    """Tells clients not to repeat a request that runs a tool, however it fails: the tool may have done its work."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runs_tool = scope["type"] == "http" and scope["path"].endswith("/tool-runtime/invoke")

        async def send_with_advice(message: Message) -> None:
            if runs_tool and message["type"] == "http.response.start" and message["status"] >= 500:
                MutableHeaders(scope=message)["x-should-retry"] = "false"
            await send(message)

        await self.app(scope, receive, send_with_advice)


class Sized:
    """Keeps the answers of a buffered function under Lambda's 6 MB.

    The answer travels as a string inside JSON, so quotes and backslashes count twice:
    https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def hold(message: Message) -> None:
            held.append(message)

        await self.app(scope, receive, hold)
        size = carried_size(b"".join(message.get("body", b"") for message in held).decode())
        if size > MAX_BUFFERED_BYTES:
            advice = "Ask for less at a time with start_index and limit."
            error = TooLarge(f"The answer has {size} bytes; at most {MAX_BUFFERED_BYTES} fit. {advice}")
            await respond(error)(scope, receive, send)
            return
        for message in held:
            await send(message)
