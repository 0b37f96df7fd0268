"""Routes that are built when they are used, and strict reading of request bodies.

A request passes these checks in this order, so that the cheap ones and those that reveal nothing come first:

    1. LazyRoute          the scope of the caller: 401, 403
    2. LazyRoute          a POST with an idempotency key, or of a client that retries: see `http/scopes.py`
    3. StrictRoute        the content type: 415
    4. StrictRequest      the body is JSON (RFC 8259): 400
    5. DirectCall         the types of the route's function: 400; or FastAPI, for what `http/direct_calls.py` lacks

FastAPI reads the types of all functions when a module declares its routes, for which the first user would wait.
LazyRoute declares only what matching needs, and builds itself when anything else is read of it, so a process that gets
one request builds one route. LazyRouter does the same for whole modules whose routes are rarely used.
"""

import re
from collections.abc import Callable, Coroutine
from functools import cached_property
from importlib import import_module
from json import JSONDecodeError
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match, Router, compile_path
from starlette.types import Receive, Scope, Send

from stint.domain.errors import UnsupportedMediaType
from stint.domain.ids import is_id
from stint.domain.json_text import TOO_DEEP, parse_json
from stint.http.deferred_imports import without_pydantic_v1
from stint.http.direct_calls import direct_call_of
from stint.http.scopes import check_scope, rule_of
from stint.log_keys import add_log_keys

JSON = re.compile(r"\s*application/(json|[^;\s]+\+json)\s*(;.*)?", re.IGNORECASE | re.DOTALL)


class AnyPath(PathConvertor):
    """Matches ids of registrations, including those with line breaks.

    It replaces Starlette's, because /v1/inspect/routes returns the convertor's name, as in Llama Stack.
    """

    regex = "(?s:.*)"


register_url_convertor("path", AnyPath())


class StrictRequest(Request):
    """A request whose body is valid JSON (RFC 8259) and can be stored.

    FastAPI keeps the body that it asks for until the end of the request, although it needs it only to find out whether
    there is one. A body of 6 MB would take memory during the whole run, so FastAPI gets only its beginning.
    """

    async def body(self) -> bytes:
        """Return the first byte of the body."""
        return (await super().body())[:1]

    async def json(self) -> Any:
        """Parse the body, and drop its text. Raises JSONDecodeError."""
        if not hasattr(self, "_json"):
            body = await super().body()
            try:
                self._json = parse_json(body)
            except JSONDecodeError as error:
                raise explain_depth(error, body) from None
            self._body = body[:1]
        return self._json

    async def pop_object(self) -> dict[str, Any] | None:
        """Return the JSON object of the body, once; None if it is none, so that `json` returns or refuses it."""
        try:
            value = await self.json()
        except JSONDecodeError:
            return None
        if not isinstance(value, dict):
            return None
        del self._json
        return value


def explain_depth(error: JSONDecodeError, body: bytes) -> JSONDecodeError:
    """Return the error of a body that is nested too deep with the limit of filters, if these make it so deep."""
    from stint.domain.filters import MAX_DEPTH  # noqa: PLC0415 - not at the start of a function

    if error.msg != TOO_DEEP or body.count(b'"filters"') <= MAX_DEPTH:
        return error
    return JSONDecodeError(f"{TOO_DEEP}: 'filters' may be nested {MAX_DEPTH} levels deep. Use fewer levels", "", 0)


class LazyRoute(APIRoute):
    """A route that FastAPI builds at its first request: of all routes, a cold start needs one.

    Before that it has what matching needs. Whatever else is read of it builds it. Raises TypeError if its function does
    not say what the route requires.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path = path
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = set(options["methods"] or ("GET",))
        self.rule = rule_of(endpoint)
        self._declared = (endpoint, options)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in (self.methods or ()):  # otherwise the answer is a 405
            check_scope(self.rule.scope, scope)
            if scope.get("query_string"):
                from stint.http.unknown_fields import note_unknown_parameters  # noqa: PLC0415 - few requests have any

                note_unknown_parameters(self, scope)
        if scope["method"] != "POST":
            await super().handle(scope, receive, send)
        elif "idempotency-key" in Headers(scope=scope):
            from stint.http.idempotency import handle_once  # noqa: PLC0415 - few requests have a key

            await handle_once(super().handle, self.rule, scope, receive, send=send)
        elif self.rule.repeated.is_found and scope["app"].state.read_settings().find_retries:
            from stint.http.attempts import handle_attempt  # noqa: PLC0415 - not at the start of a function

            await handle_attempt(super().handle, scope, receive, send)
        else:
            await super().handle(scope, receive, send)

    def __getattr__(self, name: str) -> Any:
        declared = self.__dict__.pop("_declared", None)
        if declared is None:
            raise AttributeError(name)
        endpoint, options = declared
        with without_pydantic_v1():
            super().__init__(self.path, endpoint, **options)
        return getattr(self, name)


class LazyRouter(BaseRoute):
    """The routes of a module that is imported with the first request for one of its `prefixes`.

    It comes after the routers whose paths begin alike, because it takes all requests for these. A name in braces in a
    prefix is one part of a path, as in the path of a route.
    """

    def __init__(self, module: str, *prefixes: str) -> None:
        self.module = module
        self.prefixes = tuple(each for each in prefixes if "{" not in each)
        self.patterns = tuple(each for each in prefixes if "{" in each)

    @cached_property
    def router(self) -> Router:
        """Return the router. Raises HTTPException for unknown paths and methods, as the app's own does."""
        return Router(routes=scoped_routes(import_module(self.module).router), redirect_slashes=False)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        found = path.startswith(self.prefixes) or any(begins_as(path, each) for each in self.patterns)
        return (Match.FULL if found else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.router(scope, receive, send)


def begins_as(path: str, pattern: str) -> bool:
    """Return whether the first parts of a path are those of a pattern, in which a name in braces is any part."""
    expected = pattern.split("/")
    parts = path.split("/", len(expected))
    return len(parts) >= len(expected) and all(
        part if name.startswith("{") else part == name for name, part in zip(expected, parts, strict=False)
    )


def scoped_routes(router: APIRouter) -> list[BaseRoute]:
    """Return the routes of a router. Raises TypeError if one does not check its scope."""
    for route in router.routes:
        if not isinstance(route, LazyRoute):
            raise TypeError(f"{route!r} does not check its scope. Use the route_class LazyRoute or StrictRoute.")
    return router.routes


class StrictRoute(LazyRoute):
    """A route that reads its body as StrictRequest does, and requires a JSON content type.

    Browsers send other types to any origin without a preflight (Fetch, "CORS-safelisted request-header").
    """

    def name_lines(self, request: Request) -> None:
        """Add the ids in the path to the following log lines."""
        add_log_keys(**{name: value for name, value in request.path_params.items() if is_id(value)})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle, direct = super().get_route_handler(), direct_call_of(self)

        async def handle_strictly(request: Request) -> Response:
            self.name_lines(request)
            strict = StrictRequest(request.scope, request.receive)
            content_type = request.headers.get("content-type", "")
            if not JSON.fullmatch(content_type) and await strict.body():
                raise UnsupportedMediaType(explain(content_type), param="content-type")
            if direct is not None and (arguments := await direct.find_arguments(strict, strict.pop_object)) is not None:
                return await direct.endpoint(**arguments)
            return await handle(strict)

        return handle_strictly


def explain(content_type: str) -> str:
    """Return the error of a content type, and what to send instead."""
    found = f"is {content_type[:100]!r}" if content_type else "is missing"
    return f"The content type of the body {found}. Send JSON with the header content-type: application/json"
