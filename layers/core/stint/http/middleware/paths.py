"""Middleware for paths: trailing slashes, base paths, and the second path of the OpenAI API."""

from urllib.parse import quote, unquote

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

OPENAI_PREFIX = "/v1/openai/v1/"
END_USERS = "/v1/admin/users/"
"""The path that ends with the id of an end user, which may end with a slash, too."""


class PathsMiddleware:
    """Change the path of a request to that of a route, in this order:

    1. A path with a trailing slash is redirected to the one without, as Llama Stack does. The location is relative, so
       it is below the same stage or base path.
    2. The base path of a custom domain becomes `root_path`. Mangum leaves it in the path (`finds_base`); the runtime
       of streams does not.
    3. The second path of the OpenAI API, which Llama Stack's clients call, becomes the first: /v1/openai/v1 is /v1.
       Routes that differ between the two check `is_llama_stack_address`. `stint.path` is the path that was sent, by
       which it is decided whether the request needs a caller, and which errors name.
    """

    def __init__(self, app: ASGIApp, *, finds_base: bool) -> None:
        self.app = app
        self.finds_base = finds_base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            location = location_of(scope)
            if location:
                return await Response(status_code=307, headers={"location": location})(scope, receive, send)
            if self.finds_base:
                find_base(scope)
            map_prefix(scope)
        return await self.app(scope, receive, send)


def location_of(scope: Scope) -> str:
    """Return the relative URL without the trailing slash of the path; an empty string if it has none."""
    path: str = scope["path"]
    name = path.rstrip("/").rpartition("/")[2]
    if not path.endswith("/") or not name or END_USERS in path:
        return ""
    query = scope["query_string"].decode("latin-1")
    return f"../{quote(name)}{'?' if query else ''}{query}"


def find_base(scope: Scope) -> None:
    """Set the `root_path` of a request to the base path of its custom domain, if it has one."""
    base = "" if scope.get("root_path") else mapped_base_of(scope)
    if base:
        scope["root_path"] = base
        scope["path"] = base + (scope["path"].removeprefix(base) or "/")


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


def map_prefix(scope: Scope) -> None:
    """Map the second path of the OpenAI API to the first one."""
    path: str = scope["path"]
    base, _, _ = path.partition("/v1/")
    if path.startswith(base + OPENAI_PREFIX):
        scope["stint.path"] = path
        scope["path"] = path.replace(OPENAI_PREFIX, "/v1/", 1)
        scope["stint.llama_stack"] = True
