"""Middleware that adds headers."""

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.metering import find_meter
from stint.settings import Settings

EXPOSED = ", ".join(
    ["x-request-id", "x-trace-id", "x-should-retry", "retry-after"]
    + [f"x-ratelimit-{part}-{name}" for part in ("limit", "remaining", "reset") for name in ("requests", "tokens")]
)
"""Headers that browsers may read."""


class ResponseHeadersMiddleware:
    """Add the headers of every response.

    Browsers do not guess types (`nosniff`), and caches store nothing (`no-store`) unless the route says otherwise.
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


class RateLimitHeadersMiddleware:
    """Add OpenAI's headers of rate limits to the responses of requests that have budgets."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_limits(message: Message) -> None:
            meter = find_meter()
            if message["type"] == "http.response.start" and meter is not None and meter.spending is not None:
                MutableHeaders(scope=message).update(meter.spending.to_headers())
            await send(message)

        await self.app(scope, receive, send_with_limits)


class CORSMiddleware:
    """Allow browsers of one origin to read responses (STINT_CORS_ORIGIN). API Gateway answers preflight requests."""

    def __init__(self, app: ASGIApp, read_settings: Callable[[], Settings]) -> None:
        self.app = app
        self.read_settings = read_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self.read_settings().cors_origin

        async def send_with_origin(message: Message) -> None:
            if origin and message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["access-control-allow-origin"] = origin
                headers["access-control-expose-headers"] = EXPOSED
                headers.add_vary_header("origin")
            await send(message)

        await self.app(scope, receive, send_with_origin)


class NoRetryMiddleware:
    """Stop clients from retrying a failed request that runs a tool, which may have had its effects."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runs_tool = scope["type"] == "http" and scope["path"].endswith("/tool-runtime/invoke")

        async def send_with_advice(message: Message) -> None:
            if runs_tool and message["type"] == "http.response.start" and message["status"] >= 500:
                MutableHeaders(scope=message)["x-should-retry"] = "false"
            await send(message)

        await self.app(scope, receive, send_with_advice)
