"""The log line, the metrics and the ids of a request."""

import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stint.observability import Observation


class RequestLoggingMiddleware:
    """Write the log line and the metrics of every request, and add its ids to the response."""

    def __init__(self, app: ASGIApp, function: str) -> None:
        self.app = app
        self.function = function

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        context = scope.get("aws.context")
        request_id = context.aws_request_id if context else str(uuid4())
        observation = Observation(request_id, self.function, getattr(context, "xray_trace_id", ""))
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
            observation.finish_request(scope["method"], route, status)


def trace_id_of(scope: Scope) -> str:
    """Return a trace id of 32 hexadecimal digits: X-Ray's if there is one."""
    root = re.search(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24})", Headers(scope=scope).get("x-amzn-trace-id", ""))
    return "".join(root.groups()) if root else uuid4().hex
