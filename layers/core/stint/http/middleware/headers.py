"""Middleware that adds headers to responses."""

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.http.scopes import WARNING
from stint.metering import find_meter
from stint.settings import Settings

WARNING_HEADER = "x-stint-warning"
"""The header with what is wrong with a request that is answered all the same: see `http/warning_header.py`."""

EXPOSED = ", ".join(
    ["x-request-id", "x-trace-id", "x-should-retry", "retry-after", WARNING_HEADER, "stint-session-id"]
    + [f"x-ratelimit-{part}-{name}" for part in ("limit", "remaining", "reset") for name in ("requests", "tokens")]
)
"""Headers that browsers may read."""

TOOL_PATH = "/tool-runtime/invoke"


class ResponseHeadersMiddleware:
    """Add the headers of every response, also of redirects, refusals and unexpected errors.

    | response                        | headers                                                                       |
    |---------------------------------|-------------------------------------------------------------------------------|
    | each                            | `nosniff`: browsers guess no type. `no-store` unless the route differs        |
    | of a request with unknown       | `x-stint-warning`, which names them                                           |
    | fields or names                 |                                                                               |
    | of a run under budgets          | OpenAI's headers of rate limits                                               |
    | with STINT_CORS_ORIGIN          | those with which browsers of this origin may read it; API Gateway answers     |
    |                                 | preflight requests                                                            |
    | 5xx of a request that runs a    | `x-should-retry: false`, because the tool may have had its effects            |
    | tool                            |                                                                               |
    """

    def __init__(self, app: ASGIApp, read_settings: Callable[[], Settings]) -> None:
        self.app = app
        self.read_settings = read_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = self.read_settings().cors_origin
        runs_tool = scope["type"] == "http" and scope["path"].endswith(TOOL_PATH)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if WARNING in scope:
                    headers[WARNING_HEADER] = scope[WARNING]
                if runs_tool and message["status"] >= 500:
                    headers["x-should-retry"] = "false"
                add_headers(headers, origin)
            await send(message)

        await self.app(scope, receive, send_with_headers)


def add_headers(headers: MutableHeaders, origin: str) -> None:
    """Add the headers that do not depend on the request's path. `origin` is that of CORS, empty if none is allowed."""
    meter = find_meter()
    if meter is not None and meter.spending is not None:
        headers.update(meter.spending.to_headers())
    if origin:
        headers["access-control-allow-origin"] = origin
        headers["access-control-expose-headers"] = EXPOSED
        headers.add_vary_header("origin")
    headers["x-content-type-options"] = "nosniff"
    headers.setdefault("cache-control", "no-store")
