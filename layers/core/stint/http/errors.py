"""Errors in HTTP: the table of statuses, and the body of all errors.

Services raise a StintError; `STATUS` is the one table of its statuses. All errors have the same body:

    the error occurs                           it is returned by
    in a route, or in a service                `answer_stint_error`
    in the validation of a request             `answer_invalid_request`: 400, with all problems
    at an unknown path, or with its method     `answer_http_exception`: 404 or 405, with advice
    in a middleware                            `respond`, called by the middleware
    unexpectedly                               ServerErrorMiddleware: 500, whose details only the log has
    after the first byte of a response         `late_document_of`, as the last event or in place of the document

Clients of OpenAI and Llama Stack retry 409, 429 and 5xx, so headers stop them where a retry cannot help or would repeat
effects:

    the error                                  x-should-retry    retry-after
    with the id of a run that was started      false             only of a provider, or of a 429
    4xx, unless listed below; 501              false             -
    429 of a limit per minute                  -                 the rest of the minute
    429 of a provider's rate                   -                 the provider's, or 1 second
    429 of a provider's quota                  false             the provider's, or 1 second
    409 of an idempotency key in use           -                 1 second
    502 of refused credentials of a provider   false             -
    503                                        -                 the provider's, or 1 second
    500, 502, 504                              -                 -
"""

import logging
from collections.abc import Sequence
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from stint.domain.errors import (
    LONGEST_PARAM,
    CallTooDeep,
    Conflict,
    ContextLengthExceeded,
    DeadlineExceeded,
    Forbidden,
    IdempotencyKeyReused,
    Interrupted,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    NotFound,
    NotSupported,
    QuotaExceeded,
    RateLimited,
    RateLimitExceeded,
    RequestRunning,
    ShieldFailed,
    StintError,
    StoreUnavailable,
    TooLarge,
    ToolUnauthorized,
    ToolUnavailable,
    Unauthenticated,
    Unexpected,
    UnsupportedMediaType,
    shorten,
)
from stint.domain.run_outcome import ErrorInfo
from stint.domain.schema import Schema
from stint.domain.validation import MISSING_FIELD, message_of

logger = logging.getLogger(__name__)

STATUS: dict[type[StintError], int] = {
    InvalidRequest: 400,
    CallTooDeep: 400,
    ContextLengthExceeded: 400,
    ToolUnauthorized: 401,
    QuotaExceeded: 402,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    Interrupted: 409,
    TooLarge: 413,
    UnsupportedMediaType: 415,
    IdempotencyKeyReused: 422,
    RateLimited: 429,
    RateLimitExceeded: 429,
    StintError: 500,
    NotSupported: 501,
    ModelError: 502,
    ShieldFailed: 502,
    ToolUnavailable: 502,
    ModelOverloaded: 503,
    StoreUnavailable: 503,
    DeadlineExceeded: 504,
}
KINDS = {kind.code: kind for kind in STATUS}
RETRY_AFTER_SECONDS = 1
LONGEST_PROBLEM = 500
MAX_PROBLEMS = 20
"""Maximum problems in one response. A long list can have one for each entry."""

Part = str | int
Trace = tuple[int, bool, str]
"""The number of parts of a location that were found, whether the last one was, and their path."""


class ErrorObject(ErrorInfo):
    """The error. `turn_id` or `response_id` is present if a run was started before the error."""

    turn_id: str = ""
    response_id: str = ""


class ErrorResponse(Schema):
    """The body of every error. `detail` is the message, or the problems of an invalid request."""

    error: ErrorObject
    detail: str | dict[str, Any]


def status_of(error: StintError) -> int:
    """Return the status of an error. A class that is not in the table has its parent's status.

    An error that was stored is of no class of its own: its code decides.
    """
    kinds = KINDS.get(error.code, StintError).__mro__ if type(error) is StintError else type(error).__mro__
    return next(STATUS[kind] for kind in kinds if kind in STATUS)


def body_of(error: StintError) -> dict[str, Any]:
    """Return the `error` object. All fields are strings, because some clients drop an error with a null."""
    body: dict[str, Any] = ErrorInfo.of(error).model_dump()
    for name in ("turn_id", "response_id"):
        if (begun := getattr(error, name)) is not None:
            body[name] = begun
    return body


def document_of(error: StintError, detail: Any = None) -> dict[str, Any]:
    """Return the body of an error. `detail` is its message, unless there are problems to list."""
    return {"error": body_of(error), "detail": detail or error.message}


def late_document_of(error: Exception) -> dict[str, Any]:
    """Return the body of an error after the first byte of a response, as it would be with a status."""
    if not isinstance(error, StintError):
        logger.error("An unexpected error occurred in a stream", exc_info=error)
        error = Unexpected()
    return document_of(error)


def headers_of(error: StintError) -> dict[str, str]:
    """Return the headers that control the client's retries.

    Clients retry 409, 429 and 5xx and send no idempotency key. An invalid request would fail again, and a request that
    started a turn would start another one.
    """
    status, begun = status_of(error), has_begun(error)
    headers = {}
    if begun or is_permanent(error):
        headers["x-should-retry"] = "false"
    if challenge := challenge_of(error):
        headers["www-authenticate"] = challenge
    if isinstance(error, ModelOverloaded | RateLimitExceeded) and error.retry_after is not None:
        headers["retry-after"] = str(max(1, ceil(error.retry_after)))
    elif status == 429 or (status == 503 and not begun) or isinstance(error, RequestRunning):
        headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    return headers


def challenge_of(error: StintError) -> str:
    """Return the value of WWW-Authenticate (RFC 6750, section 3), or an empty string."""
    if isinstance(error, Unauthenticated):
        return "Bearer"
    if isinstance(error, Forbidden) and error.scope:
        return f'Bearer error="insufficient_scope", scope="{error.scope}"'
    return ""


def is_permanent(error: StintError) -> bool:
    """Return whether an SDK should not repeat a request by itself: it would fail again, or wait for another run to end.

    `session_locked` and `too_many_waiting` are permanent here, because an SDK repeats within seconds, and a run takes
    longer. The caller may repeat the request later.
    """
    if isinstance(error, RateLimited):
        return error.code != RateLimited.code
    if isinstance(error, RateLimitExceeded | RequestRunning):
        return False
    status = status_of(error)
    return status < 500 or status == 501 or isinstance(error, ModelUnauthorized)


def has_begun(error: StintError) -> bool:
    """Return whether a run was started before an error, so that a retry would start another one."""
    return error.turn_id is not None or error.response_id is not None


def respond(error: StintError, detail: Any = None) -> JSONResponse:
    """Return the response of an error."""
    return JSONResponse(document_of(error, detail), status_code=status_of(error), headers=headers_of(error))


async def answer_stint_error(_: Request, error: StintError) -> JSONResponse:
    if status_of(error) >= 500 and not has_begun(error) and not isinstance(error, NotSupported):
        logger.error("The request failed", extra={"error_code": error.code, "error": error.message})
    return respond(error)


async def answer_invalid_request(_: Request, error: RequestValidationError) -> JSONResponse:
    found = error.errors()
    problems = [
        {"loc": short_location(problem["loc"]), "msg": problem_message(problem), "type": problem["type"]}
        for problem in found[:MAX_PROBLEMS]
    ]
    fields = [shorten(field_of(problem, error.body), LONGEST_PARAM) for problem in found[:MAX_PROBLEMS]]
    message = "; ".join(map(describe_problem, fields, problems))
    if len(found) > MAX_PROBLEMS:
        message += f"; and {len(found) - MAX_PROBLEMS} more"
    return respond(InvalidRequest(message, param=fields[0]), detail={"errors": problems})


def describe_problem(field: str, problem: dict[str, Any]) -> str:
    """Return the message of a problem with its field, which a message about a missing field begins with."""
    if problem["type"] == MISSING_FIELD:
        return f"{field.rpartition('.')[0]}.{problem['msg']}".removeprefix(".")
    return f"{field}: {problem['msg']}"


def problem_message(problem: dict[str, Any]) -> str:
    """Return the message of a problem, with our own text for a body that is not JSON."""
    if problem["type"] == "json_invalid":
        return f"The body cannot be read as JSON: {problem['ctx']['error']}"
    return shorten(message_of(problem), LONGEST_PROBLEM)


def short_location(location: Sequence[str | int]) -> list[str | int]:
    """Shorten the names of fields in a location, which may come from the caller."""
    return [part if isinstance(part, int) else shorten(part, LONGEST_PARAM) for part in location]


def field_of(problem: dict[str, Any], body: Any) -> str:
    """Return the invalid field by its path in the body, the query or the URL's path."""
    source, *location = problem["loc"]
    if problem["type"] == MISSING_FIELD:
        location.append(problem["ctx"]["field"])
    if problem["type"] == "json_invalid" or not location:
        return str(source)
    if source != "body":
        return ".".join(map(str, location))
    return locate_field(location, body, missing=problem["type"] in ("missing", MISSING_FIELD)) or "body"


async def answer_http_exception(request: Request, error: HTTPException) -> JSONResponse:
    from stint.http.unknown_routes import describe_unknown_route, methods_of  # noqa: PLC0415 - not at the start

    path = request.scope.get("stint.path", request.url.path)
    where = shorten(f"{request.method} {path}", LONGEST_PARAM)
    headers = {"x-should-retry": "false"}
    body = {"message": str(error.detail), "type": "invalid_request_error", "code": "invalid_request", "param": ""}
    if error.status_code == 404:
        body |= {"message": describe_unknown_route(request), "type": "not_found", "code": "route_not_found"}
    if error.status_code == 405:
        headers["allow"] = ", ".join(methods_of(request))
        message = f"{where} is not supported. The methods of this path are: {headers['allow']}."
        body |= {"message": message, "code": "method_not_allowed"}
    return JSONResponse({"error": body, "detail": body["message"]}, status_code=error.status_code, headers=headers)


def add_error_handlers(app: FastAPI) -> None:
    """Make an app return all expected errors in the common body."""
    app.exception_handler(StintError)(answer_stint_error)
    app.exception_handler(RequestValidationError)(answer_invalid_request)
    app.exception_handler(HTTPException)(answer_http_exception)


def locate_field(location: Sequence[Part], body: Any, *, missing: bool) -> str:
    """Return the path of pydantic's location; empty for the whole body.

    A location also has parts that are not in the body: names of union members, and positions in a value that was
    converted before validation. These are omitted. With `missing`, the last part is an absent field.
    """
    return trace(location, body, missing=missing)[2].removeprefix(".")


def trace(location: Sequence[Part], value: Any, *, missing: bool) -> Trace:
    """Find the parts of a location in a value. The best of several matches has the last part, and the most parts.

    A union member may have the name of a sibling field, such as `top_p` of Llama Stack's sampling strategies.
    """
    if not location:
        return 0, True, ""
    part, *rest = location
    found = []
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        found.append(prepend(f"[{part}]", trace(rest, value[part], missing=missing)))
    elif isinstance(value, dict) and part in value:
        found.append(prepend(f".{part}", trace(rest, value[part], missing=missing)))
    elif isinstance(value, dict) and missing and not rest:
        found.append((1, True, f".{part}"))
    count, last, path = trace(rest, value, missing=missing)
    return max([*found, (count, last and bool(rest), path)], key=lambda way: way[:2])


def prepend(step: str, way: Trace) -> Trace:
    count, last, path = way
    return count + 1, last, step + path
