"""The rule of a route: the scope that it requires, and the answer to a repetition of its POST.

A route is declared in one place, by the decorators of its function:

    @router.post("/{agent_id}/session", response_model=SessionCreateResponse)
    @requires("use", repeated=RETRIED)
    async def create_session(...)

`LazyRoute` checks the scope of each request, and a route without `requires` cannot be declared, so that its function
does not start. docs/openapi.json is made from the routes, and the tests of isolation send each of its operations. Tests
compare the routes with docs/security.md, with template.yaml, and with the events, which are named after the functions.

A POST may be sent again with the same Idempotency-Key, or by a client that retries without one (if the setting
`find_retries` is on):

                with the key, after the    with the key, after the     with the key, while       without a key
                first one has succeeded    first one has failed        the first one runs
    ANSWER      gets the stored answer     runs                        waits                     runs
    READ        runs                       runs                        runs                      runs
    OBJECT      gets the stored answer     finds what was created      waits                     runs
    RETRIED     gets the stored answer     finds what was created      waits                     finds what was created
    RUN         gets the stored answer     finds the run               follows the run           finds the run
    RESUMPTION  gets the stored answer     runs                        follows the run           runs
    CALL        finds the run              finds the run               follows the run           runs

docs/decisions.md, entries 99 and 163, have the reasons.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from starlette.datastructures import Headers
from starlette.types import Scope as ASGIScope

from stint.caller import require_any_scope, require_scope
from stint.dataclasses import dataclass
from stint.domain.principals import Scope

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

RouteScope = Scope | Literal["any"] | None
"""The scope that a route requires. `any`: one of them, whichever it is. None: the route is open."""

END_USER_HEADER = "x-stint-user"
"""The header that names the end user for whom a request acts."""

CALL_DEPTH_HEADER = b"stint-call-depth"
"""The header with the depth of a call, as ASGI has it (`domain/call_depth.py`)."""

WARNING = "stint.warning"
"""The key of a request's scope that has the value of the header `x-stint-warning` of its response."""

OPEN_PATHS = frozenset(
    {
        "/v1/health",
        "/health",
        "/.well-known/agent-card.json",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/v1/mcp",
        "/v1/mcp/.well-known/oauth-protected-resource",
    }
)
"""Paths that need no caller, which the middleware lets through before a route is found. Their routes require None."""

RULE = "stint_rule"
"""The attribute of a route's function that has its rule."""


@dataclass(frozen=True)
class Repetition:
    """The answer to a repetition of a POST. The table above has its kinds."""

    is_remembered: bool = True
    """False if the route only reads. Its answers have contents of others' objects, so they are not stored."""
    keeps_id: bool = False
    """The record of the idempotency key has the id of what the request creates, so a failed one creates it once."""
    is_found: bool = False
    """A client's retry without a key finds what the first attempt created."""
    is_followed: bool = False
    """A repetition with the key follows the run of the first request."""
    is_call: bool = False
    """It is a call by JSON-RPC. Its id is not compared, as clients count with it, and is in the answer. So no answer is
    stored: a repetition gets one of its own. A call that only reads runs each time."""


ANSWER = Repetition()
READ = Repetition(is_remembered=False)
OBJECT = Repetition(keeps_id=True)
RETRIED = Repetition(keeps_id=True, is_found=True)
RUN = Repetition(keeps_id=True, is_found=True, is_followed=True)
RESUMPTION = Repetition(is_followed=True)
CALL = Repetition(keeps_id=True, is_followed=True, is_call=True)


@dataclass(frozen=True)
class RouteRule:
    """The rule of a route, at each of its methods."""

    scope: RouteScope
    repeated: Repetition
    has_secret: bool
    """The answer has a secret. It is not stored, and a repetition with the key is refused."""


def requires(
    scope: RouteScope, *, repeated: Repetition = ANSWER, has_secret: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator of a route's function, below that of the router.

    Vector stores and vector dbs need `knowledge:write`, because a tenant shares them: their contents get into the
    answers of all its callers.
    """

    def add_rule(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, RULE, RouteRule(scope, repeated, has_secret))
        return endpoint

    return add_rule


def rule_of(endpoint: Callable[..., Any]) -> RouteRule:
    """Return the rule of a route's function. Raises TypeError if it has none."""
    rule = getattr(endpoint, RULE, None)
    if not isinstance(rule, RouteRule):
        raise TypeError(f"{endpoint!r} requires no scope. Add @requires(scope) below the decorator of its route.")
    return rule


def check_scope(needed: RouteScope, scope: ASGIScope) -> None:
    """Check that the caller may use a route that needs a scope. Raises Unauthenticated, or Forbidden."""
    if needed is None:
        return
    if needed == "any":
        require_any_scope()
    else:
        require_scope(needed)
    if END_USER_HEADER in Headers(scope=scope):
        require_scope("users:act")
