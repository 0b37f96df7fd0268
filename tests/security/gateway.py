"""The gateway of the template in front of an app: its routes, its authorizer, and its own responses."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

from functions.authorizer import app as authorizer
from infra.local.authorization import Authorization
from infra.local.cloud import TEMPLATE
from infra.local.front import http_request
from infra.local.functions import FunctionError
from infra.local.gateway_response import NO_ROUTE, Refused, render
from infra.local.proxy_event import HttpRequest, make_event
from infra.local.proxy_response import Head
from infra.local.routing import Match, Router
from infra.local.system import Mock, System
from infra.local.translation import translate
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.system.data_outputs import OUTPUTS

CONTEXT = SimpleNamespace(aws_request_id="authorizer", function_name="authorizer")
"""The Lambda context of the authorizer."""


def read_system() -> System:
    """Return the resources of the translated template."""
    return System(TEMPLATE, translate(TEMPLATE, "us-east-1"), outputs=OUTPUTS)


class Gateway:
    """ASGI app that authorizes each request like API Gateway, and passes the principal in the event.

    The function of the authorizer runs in the thread `access`. `clock` is that of the cache of its answers.
    """

    def __init__(self, app: ASGIApp, system: System, access: ThreadPoolExecutor, clock: Callable[[], float]) -> None:
        self._app = app
        self._system = system
        self._access = access
        self._router = Router(system.routes)
        self._authorization = Authorization(self._invoke, system.region, system.stage, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = http_request(scope, self._system.stage)
        body = await read_body(receive)
        try:
            match = self._match(request)
            context = await self._authorization.authorize(request, match)
        except Refused as refused:
            await answer(send, *render(refused.refusal, request, self._system.gateway_responses))
            return
        integration = match.route.integration
        if isinstance(integration, Mock):
            await answer(send, Head(integration.status, list(integration.headers.items())), integration.body.encode())
            return
        event = make_event(request, match, self._system.stage, ())
        if context is not None:
            event["requestContext"]["authorizer"] = context
        raw = request.path.encode()
        path = unquote(request.path)
        await self._app({**scope, "path": path, "raw_path": raw, "aws.event": event}, once(body, receive), send)

    def _match(self, request: HttpRequest) -> Match:
        match = self._router.match(request.method, request.path)
        if match is None:
            raise Refused(NO_ROUTE)
        return match

    async def _invoke(self, _: str, event: bytes) -> bytes | FunctionError:
        return await asyncio.get_running_loop().run_in_executor(self._access, invoke_authorizer, event)


def invoke_authorizer(event: bytes) -> bytes | FunctionError:
    """Run the function of the authorizer like Lambda."""
    try:
        return json.dumps(authorizer.handler(json.loads(event), CONTEXT)).encode()
    except Exception as error:  # noqa: BLE001 - like Lambda
        return FunctionError.of(type(error).__name__, str(error))


async def read_body(receive: Receive) -> bytes:
    """Read a request to its end, like API Gateway. A server that closes before resets the connection of its client."""
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(body)


def once(body: bytes, receive: Receive) -> Receive:
    """Return a function that first returns the body that was read, and then what the server still has."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


async def answer(send: Send, head: Head, body: bytes) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in head.headers]
    await send({"type": "http.response.start", "status": head.status, "headers": headers})
    message: dict[str, Any] = {"type": "http.response.body", "body": body}
    await send(message)
