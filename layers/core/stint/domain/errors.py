"""The errors, grouped by cause. `stint.http.errors` has the HTTP status of each.

Code below `http` raises these and knows no statuses. There is a class where code decides by it: by a status, a retry,
or what a run does after it. Causes that only callers tell apart are codes of one class.

A message may quote what a caller or another server sent, and goes to answers, logs and records. So it is made safe when
the error is made, not where it is shown: it loses the known credentials, and the middle of a long text.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from stint.domain.known_secrets import redact

LONGEST_MESSAGE, LONGEST_PARAM = 4_000, 500
"""Maximum characters of a message and of a field's name, which may contain much longer texts from callers."""


def shorten(text: str, most: int) -> str:
    """Cut the middle of a text that is too long. The end of a message says what to do."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 4 :]}"


class StintError(Exception):
    """An error that a caller may read.

    `message` says what is wrong, where, and what to do, without known credentials. `param` names the invalid field.
    `turn_id` or `response_id` is set once a run has started. A repeated request would then start another one.
    """

    code = "server_error"
    type = "server_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None) -> None:
        message = shorten(redact(message), LONGEST_MESSAGE)
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.param = None if param is None else shorten(param, LONGEST_PARAM)
        self.turn_id: str | None = None
        self.response_id: str | None = None

    def add(self, sentence: str) -> None:
        """Add a sentence without secrets, which may be empty, to the message."""
        if sentence:
            self.message += f"{'' if self.message.endswith('.') else '.'} {sentence}"
            self.args = (self.message,)


class InvalidRequest(StintError):
    """The request is invalid."""

    code = "invalid_request"
    type = "invalid_request_error"


class CallTooDeep(InvalidRequest):
    """Too many agents have called each other before this run (`domain/call_depth.py`)."""

    code = "call_too_deep"


class UnsupportedMediaType(InvalidRequest):
    """The Content-Type of a request's body is not JSON."""

    code = "unsupported_media_type"


class UnresolvableURL(InvalidRequest):
    """A URL cannot be fetched: its host does not resolve, or it redirects to an invalid URL."""

    code = "url_unavailable"


class Unauthenticated(StintError):
    """The request has no caller."""

    code = "unauthorized"
    type = "authentication_error"


class Forbidden(StintError):
    """The caller may not do this. `scope` is the one that is missing, if a scope would allow it."""

    code = "forbidden"
    type = "permission_error"

    def __init__(self, message: str, *, code: str | None = None, param: str | None = None, scope: str = "") -> None:
        super().__init__(message, code=code, param=param)
        self.scope = scope


class Stopped(Forbidden):
    """An admin has stopped the session, the caller's API key or the tenant."""

    code = "stopped"


KEPT_BY_CLIENTS = ("Agent", "Session", "Conversation")
"""Kinds of objects whose ids clients store, so that an id can come from another time, server or caller."""
CAUSES = (
    ": it was deleted or has expired, belongs to another tenant or end user (check the key), or to another server or"
    " state folder (check the base URL)"
)


class NotFound(StintError):
    """An object does not exist, was deleted, or has expired."""

    code = "not_found"
    type = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        causes = CAUSES if kind in KEPT_BY_CLIENTS else ""
        code = f"{kind.lower().replace(' ', '_')}_not_found"
        super().__init__(f"{kind} {identifier!r} not found{causes}", code=code)


class Conflict(StintError):
    """The request conflicts with the current state, which is unchanged."""

    code = "conflict"
    type = "conflict"


class RequestRunning(Conflict):
    """A request with the same idempotency key still runs. The same request may be sent again later."""

    code = "idempotency_key_in_use"


class IdempotencyKeyReused(StintError):
    """An idempotency key was sent before with another body."""

    code = "idempotency_key_reused"
    type = "invalid_request_error"


class Cancelled(Conflict):
    """The run was cancelled. Its finished steps are kept."""

    code = "cancelled"


class NotMarkedDeleted(Conflict):
    """A deletion cannot be finished, because the object is not marked as deleted."""

    code = "not_marked_deleted"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"{kind} {identifier!r} is not marked as deleted, so it is not deleted.")


class WriteInProgress(Conflict):
    """An object cannot be deleted yet, because a process may still write parts of it."""

    code = "write_in_progress"


class TooLarge(StintError):
    """A request or a response is larger than the platform allows."""

    code = "too_large"
    type = "invalid_request_error"


class NotSupported(StintError):
    """A documented operation that this server does not offer."""

    code = "not_supported"
    type = "not_supported"


class ModelError(StintError):
    """The model's provider failed. `upstream_status` is its HTTP status, if it returned one."""

    code = "model_error"
    type = "model_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        upstream_status: int | None = None,
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.upstream_status = upstream_status


class ModelUnauthorized(ModelError):
    """The provider refuses this server's credentials. The message names the setting to change."""

    code = "model_unauthorized"
    type = "server_error"


class ModelUnreachable(ModelError):
    """No connection to the provider can be made, so that the request was not sent."""


class ModelOverloaded(ModelError):
    """The provider has no capacity. `retry_after` is in seconds, if the provider sent it."""

    code = "model_overloaded"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        upstream_status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, code=code, upstream_status=upstream_status)
        self.retry_after = retry_after


class RateLimited(ModelOverloaded):
    """This server exceeded the provider's rate limit or, with `insufficient_quota`, its quota."""

    code = "rate_limit_exceeded"
    type = "too_many_requests"


class ContextLengthExceeded(ModelError):
    """The conversation does not fit into the model's context."""

    code = "context_length_exceeded"
    type = "invalid_request_error"


class ToolUnavailable(StintError):
    """A toolgroup's provider cannot be reached, or refuses the credentials of its registration."""

    code = "tool_unavailable"


class ToolUnauthorized(ToolUnavailable):
    """A toolgroup's provider refuses the caller's credentials, or requires some. `status` is of HTTP, 0 without."""

    code = "tool_unauthorized"
    type = "authentication_error"
    status = 0


class RateLimitExceeded(StintError):
    """The caller's key or tenant has used up its requests or tokens of the minute. `retry_after` is in seconds."""

    code = "rate_limit_exceeded"
    type = "too_many_requests"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(StintError):
    """The caller's key or tenant has spent its money of the month."""

    code = "insufficient_quota"
    type = "insufficient_quota"


class ShieldFailed(StintError):
    """A shield returned no verdict. The messages count as not checked."""

    code = "shield_failed"


class DeadlineExceeded(StintError):
    """The run did not end within the time of the function or the route."""

    code = "deadline_exceeded"


class Interrupted(StintError):
    """The run lost its lease to another request, or its process died."""

    code = "interrupted"
    type = "conflict"


class StoreUnavailable(StintError):
    """The database throttles or does not answer. With `unsure`, a write may have succeeded."""

    code = "store_unavailable"

    def __init__(self, message: str, *, unsure: bool = False) -> None:
        super().__init__(message)
        self.unsure = unsure


class Unexpected(StintError):
    """An error of this server. Only the log has the details."""

    def __init__(self) -> None:
        super().__init__("An unexpected error occurred in the server. Check the server's log.")


RETRYABLE_CODES = frozenset(error.code for error in (RateLimited, ModelOverloaded, StoreUnavailable, Interrupted))
"""Codes of failures of runs that another attempt may not meet."""

LOCKED = ("session_locked", "conversation_locked")
"""Codes of a Conflict that ends when another request has released a session or a conversation."""

CALLER_ERRORS = (InvalidRequest, NotFound, Conflict, ContextLengthExceeded, ToolUnavailable)


@contextmanager
def error_param(param: str) -> Iterator[None]:
    """Add the field to errors of the caller that name none."""
    try:
        yield
    except CALLER_ERRORS as error:
        error.param = error.param or param
        raise


def rename_param(param: str | None, fields: Mapping[str, str]) -> str | None:
    """Return a field by the API's name for it. `messages[1].content` has that of `messages`, if there is one."""
    root = re.split(r"[.\[]", param or "", maxsplit=1)[0]
    return fields.get(param or "") or fields.get(root) or param
