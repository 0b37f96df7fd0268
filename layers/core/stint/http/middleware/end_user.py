"""Middleware that reads for which end user a request acts."""

from starlette.types import ASGIApp, Receive, Scope, Send

from stint.caller import set_end_user
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.limits import MAX_END_USER
from stint.http.errors import respond
from stint.http.scopes import END_USER_HEADER


class EndUserMiddleware:
    """Set the end user whom the header X-Stint-User names. The objects that the request creates belong to them.

    `http/scopes.py` checks that the caller may act for end users.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        try:
            user = end_user_of(scope)
        except StintError as error:
            return await respond(error)(scope, receive, send)
        set_end_user(user)
        try:
            await self.app(scope, receive, send)
        finally:
            set_end_user(None)


def end_user_of(scope: Scope) -> str | None:
    """Return the end user of a request's header. Raises InvalidRequest if it is not a text of 1 to 512 characters."""
    values = [value for name, value in scope["headers"] if name.lower() == END_USER_HEADER.encode()]
    if not values:
        return None
    try:
        user = decoded(values[0]).strip()
    except UnicodeDecodeError:
        user = ""
    if len(values) > 1 or not 0 < len(user) <= MAX_END_USER:
        message = f"X-Stint-User must be sent once, with 1 to {MAX_END_USER} characters in UTF-8."
        raise InvalidRequest(message, param="x-stint-user")
    return user


def decoded(value: bytes) -> str:
    """Decode a header in UTF-8. Raises UnicodeDecodeError.

    API Gateway decodes the bytes of a header as Latin-1, and Mangum encodes that text in UTF-8, so such a value is
    decoded twice. Otherwise functions with another adapter would see another end user.
    """
    text = value.decode()
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text
