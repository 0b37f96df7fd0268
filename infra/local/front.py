"""Local API Gateway: an ASGI app that invokes functions by the routes of the translated template.

A request passes what it passes in API Gateway, in the same order: the route, the authorizer, the integration. What API
Gateway refuses itself is refused here with its own responses (`gateway_response.py`), since clients must handle them. A
streamed response begins with a prelude of status and headers (`read_prelude`); after it, an error has no way to the
client but a closed connection.

Web pages of other origins are refused before anything else: a page in the developer's browser could otherwise call an
API that listens on this machine without keys.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from infra.local import gateway_response
from infra.local.authorization import PAGES, Authorization, Context
from infra.local.functions import FunctionError, Functions, Invocation, PayloadTooLarge, Throttled
from infra.local.gateway_response import Refused
from infra.local.proxy_event import HttpRequest, make_event
from infra.local.proxy_response import Head, MalformedResponse, parse_buffered, read_prelude
from infra.local.routing import Match, Router
from infra.local.system import Invoke, Mock, System
from infra.local.web_pages import decoded, reason_to_refuse

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Log = Callable[[str, str], None]

# https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html
REQUEST_LIMIT = 10 * 1024 * 1024


class ClientDisconnect(Exception):
    """The client disconnected before it had sent the whole request."""


class Front:
    """ASGI app for the API of a system, with or without the stage as the first part of the path.

    If a client disconnects, its function continues. If a function dies in the middle of a stream, or exceeds the
    route's timeout there, the connection is closed. `log` gets (subject, line). Web pages of `cors_origin` and of this
    machine may call the API.
    """

    def __init__(self, system: System, functions: Functions, log: Log, cors_origin: str = "") -> None:
        self._system = system
        self._cors_origin = cors_origin
        self._functions = functions
        self._log = log
        self._router = Router(system.routes)
        self._authorization = Authorization(self._ask_authorizer, system.region, system.stage, open_pages=PAGES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = http_request(scope, self._system.stage)
        answer = Answer(send, request)
        began = time.monotonic()
        try:
            self._refuse_web_pages(scope, request.path)
            await self._serve(request, receive, answer)
        except ClientDisconnect:
            return
        except Refused as refused:
            if refused.reason:
                self._log("api", f"{request.method} {request.path}: {refused.reason}")
            await answer.whole(*gateway_response.render(refused.refusal, request, self._system.gateway_responses))
        milliseconds = (time.monotonic() - began) * 1000
        self._log("api", f"{request.method} {request.path} {answer.status} {milliseconds:.0f} ms")

    def _refuse_web_pages(self, scope: Scope, path: str) -> None:
        """Check the headers of the scope, because `http_request` changes the Host."""
        reason = reason_to_refuse(decoded(scope["headers"]), path, self._cors_origin)
        if reason is not None:
            raise Refused(replace(gateway_response.FORBIDDEN, message=reason))

    async def _serve(self, request: HttpRequest, receive: Receive, answer: "Answer") -> None:
        match = self._router.match(request.method, request.path)
        if match is None:
            raise Refused(gateway_response.NO_ROUTE)
        request = replace(request, body=await read_body(receive))
        authorizer = await self._authorization.authorize(request, match)
        integration = match.route.integration
        if isinstance(integration, Mock):
            await answer.whole(Head(integration.status, list(integration.headers.items())), integration.body.encode())
            return
        deadline = asyncio.get_running_loop().time() + integration.timeout
        try:
            async with asyncio.timeout_at(deadline):
                invocation = await self._invoke(request, match, integration, authorizer)
                chunks = invocation.body()
                head, start = await read_head(invocation, chunks, stream=integration.stream)
        except TimeoutError:
            raise Refused(gateway_response.TIMED_OUT, f"no answer within {integration.timeout:g} s") from None
        if integration.stream:
            await self._relay(invocation, chunks, head, start, answer=answer, deadline=deadline)
        else:
            await answer.whole(head, start)

    async def _ask_authorizer(self, function: str, event: bytes) -> bytes | FunctionError:
        try:
            invocation = await self._functions.invoke(function, event, stream=False)
        except (PayloadTooLarge, Throttled) as error:
            return FunctionError.of(type(error).__name__, str(error))
        payload = await invocation.read()
        return invocation.error or payload

    async def _invoke(
        self, request: HttpRequest, match: Match, integration: Invoke, authorizer: Context | None
    ) -> Invocation:
        event = make_event(request, match, self._system.stage, self._system.binary_media_types)
        if authorizer is not None:
            event["requestContext"]["authorizer"] = authorizer
        payload = json.dumps(event, ensure_ascii=False).encode()
        try:
            return await self._functions.invoke(integration.function, payload, stream=integration.stream)
        except PayloadTooLarge as error:
            raise Refused(gateway_response.TOO_LARGE) from error
        except Throttled as error:
            raise Refused(gateway_response.THROTTLED, str(error)) from error

    async def _relay(
        self,
        invocation: Invocation,
        chunks: AsyncIterator[bytes],
        head: Head,
        start: bytes,
        answer: "Answer",
        deadline: float,
    ) -> None:
        """Send the stream to the client; a return before its end makes the server close the connection."""
        await answer.begin(head)
        try:
            async with asyncio.timeout_at(deadline):
                await answer.more(start)
                async for chunk in chunks:
                    await answer.more(chunk)
        except TimeoutError:
            self._log("api", f"{invocation.request_id}: the route's timeout is reached, the stream is closed")
            return
        if invocation.error is None:
            await answer.end()
        else:
            self._log("api", f"{invocation.request_id}: the stream is closed: {invocation.error.message}")


class Answer:
    """The response to one request."""

    def __init__(self, send: Send, request: HttpRequest) -> None:
        self.status = 0
        self._send = send
        self._head_only = request.method == "HEAD"
        self._own = [
            ("x-amzn-requestid", request.request_id),
            ("x-amz-apigw-id", request.request_id),
            ("x-amzn-trace-id", request.header("x-amzn-trace-id") or request.trace_id),
        ]

    async def whole(self, head: Head, body: bytes) -> None:
        # Without the body in the function's response to HEAD, the length of the body of GET is unknown.
        length = [] if self._head_only and not body else [("content-length", str(len(body)))]
        await self.begin(Head(head.status, [*head.headers, *length]))
        await self.more(body)
        await self.end()

    async def begin(self, head: Head) -> None:
        self.status = head.status
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in head.headers]
        own = [(name.encode(), value.encode()) for name, value in self._own]
        await self._send({"type": "http.response.start", "status": head.status, "headers": headers + own})

    async def more(self, body: bytes) -> None:
        if body and not self._head_only:
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def read_head(invocation: Invocation, chunks: AsyncIterator[bytes], *, stream: bool) -> tuple[Head, bytes]:
    """Return the head of the function's response with the whole body, or with the start of a streamed one."""
    try:
        if stream:
            return await read_prelude(chunks)
        payload = b"".join([chunk async for chunk in chunks])
        if invocation.error:
            raise Refused(gateway_response.MALFORMED, f"the function failed: {invocation.error.message}")
        return parse_buffered(payload)
    except MalformedResponse as error:
        reason = (
            f"the function failed: {invocation.error.message}" if invocation.error else f"malformed answer: {error}"
        )
        raise Refused(gateway_response.MALFORMED, reason) from error


def http_request(scope: Scope, stage: str) -> HttpRequest:
    """Return the request without its body, and without the stage in its path."""
    path = scope["raw_path"].split(b"?")[0].decode("latin-1")
    prefix = f"/{stage}"
    staged = path == prefix or path.startswith(f"{prefix}/")
    host, port = scope.get("server") or ("127.0.0.1", 0)
    headers = [
        (name, without_brackets(value) if name == "host" else value) for name, value in decoded(scope["headers"])
    ]
    return HttpRequest(
        method=scope["method"],
        path=(path.removeprefix(prefix) if staged else path) or "/",
        base_path=prefix if staged else "",
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
        body=b"",
        client=(scope.get("client") or ("127.0.0.1", 0))[0],
        host=next((value for name, value in headers if name == "host"), f"{host}:{port}"),
        port=port,
    )


def without_brackets(host: str) -> str:
    """Replace an IPv6 address in a Host by `localhost`: API Gateway has only names, and Mangum cannot read brackets."""
    return f"localhost{host.rpartition(']')[2]}" if host.startswith("[") else host


async def read_body(receive: Receive) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > REQUEST_LIMIT:
            raise Refused(gateway_response.TOO_LARGE)
    return bytes(body)
