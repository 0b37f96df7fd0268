"""Middleware that identifies the caller.

The credentials were checked before the function ran, by the authorizer's function or by IAM. API Gateway writes the
result into the event's request context, which no header or body of a caller reaches. So this module trusts the context,
reads no credentials, and refuses whatever lacks a principal:

    STINT_AUTH       the principal is
    authorizer       the authorizer's context; 401 if it is absent or malformed. This is the default
    iam              that of the role which has signed the request: 401 if nobody has, 403 for an unknown role
    none             ANONYMOUS, for a network that restricts who can call: the context is not read

One header counts: the depth of the call, which limits what a request may do, and gives no right.

A context variable has the principal until the response has been sent. Tasks that the request starts have a copy.
"""

from collections.abc import Callable, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from stint.caller import log_principal, set_principal
from stint.dataclasses import replace
from stint.domain.errors import StintError, Unauthenticated
from stint.domain.principals import ANONYMOUS, Principal
from stint.http.errors import respond
from stint.http.scopes import CALL_DEPTH_HEADER, OPEN_PATHS
from stint.settings import Settings

UNAUTHENTICATED = "The request has no credentials. Send an API key or a token with the header Authorization: Bearer ..."


class AuthenticationMiddleware:
    """Set the principal of a request, and refuse a request without one.

    API Gateway has authenticated the caller. Only its request context is read: a caller cannot write to it. The depth
    of the call is the caller's own statement, and is read once for all routes.
    """

    def __init__(self, app: ASGIApp, read_settings: Callable[[], Settings]) -> None:
        self.app = app
        self.read_settings = read_settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_open(scope):
            return await self.app(scope, receive, send)
        try:
            principal = authenticate(self.read_settings(), request_context_of(scope))
            if depth := call_depth_of(scope):
                principal = replace(principal, call_depth=depth)
        except StintError as error:
            return await respond(error)(scope, receive, send)
        set_principal(principal)
        log_principal(principal)
        try:
            await self.app(scope, receive, send)
        finally:
            set_principal(None)


def is_open(scope: Scope) -> bool:
    """Return whether the path that was sent needs no caller. API Gateway answers preflight requests.

    A path below OpenAI's prefix that was mapped to an open one needs a caller.
    """
    path: str = scope.get("stint.path", scope["path"])
    return path.removeprefix(scope.get("root_path", "")) in OPEN_PATHS


def call_depth_of(scope: Scope) -> int:
    """Return the depth that a request's header names; 0 without it. Raises InvalidRequest."""
    values = [value for name, value in scope["headers"] if name == CALL_DEPTH_HEADER]
    if not values:
        return 0
    from stint.domain.call_depth import DEPTH_HEADER, read_depth  # noqa: PLC0415 - few requests come from agents

    return read_depth(b",".join(values).decode("latin-1").strip(), DEPTH_HEADER)


def request_context_of(scope: Scope) -> Mapping[str, Any]:
    """Return the request context of API Gateway's event; empty if another server received the request."""
    context = (scope.get("aws.event") or {}).get("requestContext")
    return context if isinstance(context, dict) else {}


def authenticate(settings: Settings, context: Mapping[str, Any]) -> Principal:
    """Return the caller. Raises Unauthenticated, or Forbidden for an unknown role."""
    if settings.auth == "none":
        return ANONYMOUS
    if settings.auth == "iam":
        from stint.services.access.iam_roles import authenticate_role  # noqa: PLC0415 - only for this kind of stack

        return authenticate_role(settings.iam_roles, context)
    try:
        return Principal.from_context(context.get("authorizer") or {})
    except ValueError:
        raise Unauthenticated(UNAUTHENTICATED) from None
