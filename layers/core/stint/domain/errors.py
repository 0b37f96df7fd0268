"""What can go wrong, named by who is at fault. The HTTP status of each stands in `stint.http.errors`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from stint.domain.known_secrets import redact

LONGEST_MESSAGE, LONGEST_PARAM = 4_000, 500
"""Characters of an error's message and of the name of a field; what a caller sent may be much longer."""


def shorten(text: str, most: int) -> str:
    """Cut the middle of a text that is too long, since what to do stands at the end of a message."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 4 :]}"


class StintError(Exception):
    """An error that a caller may read.

    `message` says what was wrong, where, and what to do; credentials that are known are left out of it. `param` names
    the field at fault.
    `turn_id` or `response_id` is set once one was begun: from then on a repeated request would begin another one.
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


class InvalidRequest(StintError):
    """The caller sent something that cannot be done as it stands."""

    code = "invalid_request"
    type = "invalid_request_error"


class UnsupportedMediaType(InvalidRequest):
    """The body of a request is not declared to be JSON."""

    code = "unsupported_media_type"


class UnresolvableURL(InvalidRequest):
    """A URL leads nowhere: its host does not resolve, or it redirects to what is not a valid URL."""

    code = "url_unavailable"


class NotFound(StintError):
    """The caller named something that does not exist, exists no more, or has expired."""

    code = "not_found"
    type = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"{kind} {identifier!r} not found", code=f"{kind.lower().replace(' ', '_')}_not_found")


class Conflict(StintError):
    """The request contradicts the present state; the state is unchanged."""

    code = "conflict"
    type = "conflict"


class NotMarkedDeleted(Conflict):
    """A deletion was to be finished that was never begun: the object is not marked as deleted."""

    code = "not_marked_deleted"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"{kind} {identifier!r} is not marked as deleted, so it is not deleted.")


class TooLarge(StintError):
    """An answer or a request is larger than the platform can carry."""

    code = "too_large"
    type = "invalid_request_error"


class NotSupported(StintError):
    """A documented operation that this server does not offer."""

    code = "not_supported"
    type = "not_supported"


class ModelError(StintError):
    """The model's provider failed. `upstream_status` is its HTTP status, when it gave one."""

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
    """The provider refuses this server's credentials: a setting has to change, and the message names it."""

    code = "model_unauthorized"
    type = "server_error"


class ModelOverloaded(ModelError):
    """The provider has no capacity. `retry_after` is in seconds, when it said so."""

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
    """This server has asked the provider too often, or `insufficient_quota`: for more than was paid for."""

    code = "rate_limit_exceeded"
    type = "too_many_requests"


class ContextLengthExceeded(ModelError):
    """The conversation is longer than the model's context."""

    code = "context_length_exceeded"
    type = "invalid_request_error"


class ToolUnavailable(StintError):
    """A toolgroup's provider cannot be reached, or refuses the credentials it was given."""

    code = "tool_unavailable"


class ToolUnauthorized(ToolUnavailable):
    """A toolgroup's provider refuses the credentials that the caller sent, or wants some."""

    code = "tool_unauthorized"
    type = "authentication_error"


class ShieldFailed(StintError):
    """A shield gave no judgement: what it was to check counts as not checked."""

    code = "shield_failed"


class DeadlineExceeded(StintError):
    """The turn did not end before the function's or the route's time was over."""

    code = "deadline_exceeded"


class Interrupted(StintError):
    """The turn lost its session to another request, or the process that ran it died."""

    code = "interrupted"
    type = "conflict"


class StoreUnavailable(StintError):
    """The database throttles or does not answer. `unsure` tells that a write may have happened all the same."""

    code = "store_unavailable"

    def __init__(self, message: str, *, unsure: bool = False) -> None:
        super().__init__(message)
        self.unsure = unsure


class Unexpected(StintError):
    """A fault of this server; the log has the details, the caller does not."""

    def __init__(self) -> None:
        super().__init__("An unexpected error occurred in the server. Its log tells more.")


FAULTS_OF_CALLERS = (InvalidRequest, NotFound, Conflict, ContextLengthExceeded, ToolUnavailable)


@contextmanager
def at_fault(param: str) -> Iterator[None]:
    """Name the field at fault in the caller's errors that name none."""
    try:
        yield
    except FAULTS_OF_CALLERS as error:
        error.param = error.param or param
        raise


def rename_param(param: str | None, fields: Mapping[str, str]) -> str | None:
    """Return a field by the API's own name for it; `messages[1].content` has that of `messages`, if one is given."""
    root = re.split(r"[.\[]", param or "", maxsplit=1)[0]
    return fields.get(param or "") or fields.get(root) or param
