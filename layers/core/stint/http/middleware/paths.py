"""Middleware for paths: trailing slashes, base paths, and the second path of the OpenAI API."""

from urllib.parse import quote, unquote

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

OPENAI_PREFIX = "/v1/openai/v1/"
END_USERS = "/v1/admin/users/"
"""The path that ends with the id of an end user, which may end with a slash, too."""


class TrailingSlashMiddleware:
    """Redirect a path with a trailing slash to the one without, below any stage or base path, as Llama Stack does."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        name = path.rstrip("/").rpartition("/")[2]
        if not path.endswith("/") or not name or END_USERS in path:
            return await self.app(scope, receive, send)
        query = scope["query_string"].decode("latin-1")
        location = f"../{quote(name)}{'?' if query else ''}{query}"
        return await Response(status_code=307, headers={"location": location})(scope, receive, send)


class BasePathMiddleware:
    """Remove the base path of a custom domain, which Mangum keeps, from the path."""

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
    """Return the part of the path before the one that API Gateway matched."""
    path: str = scope["path"]
    event = scope.get("aws.event") or {}
    resource = event.get("resource")
    if resource == "/":
        return path.rstrip("/")
    if resource == "/{proxy+}":  # any path, also one with /v1/ in its middle, such as /openai/v1/responses
        matched = "/" + unquote(str((event.get("pathParameters") or {}).get("proxy", "")))
        return path.removesuffix(matched) if path.endswith(matched) else ""
    base, found, _ = path.partition("/v1/")
    return base if found else ""


class OpenAIPrefixMiddleware:
    """Map the OpenAI API's second path, which Llama Stack's clients call, to the first: /v1/openai/v1 is /v1.

    Routes that differ between the two check `is_llama_stack_address`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        base, _, _ = path.partition("/v1/")
        if path.startswith(base + OPENAI_PREFIX):
            scope["stint.path"] = path
            scope["path"] = path.replace(OPENAI_PREFIX, "/v1/", 1)
            scope["stint.llama_stack"] = True
        await self.app(scope, receive, send)
