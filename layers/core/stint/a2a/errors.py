"""Errors of A2A. Use cases raise them by their code; this is the one table of the protocol's numbers and reasons.

An error of this server that A2A has no word for keeps the number of `http/json_rpc.py` and its own code as the reason.
"""

from stint.dataclasses import dataclass
from stint.domain.errors import NotFound, shorten

SHOWN_CHARACTERS = 100
"""Maximum characters of a caller's id in a message."""

ERROR_INFO, BAD_REQUEST = "type.googleapis.com/google.rpc.ErrorInfo", "type.googleapis.com/google.rpc.BadRequest"
DOMAIN, OWN_DOMAIN = "a2a-protocol.org", "stint"
"""The domains of reasons: those that A2A defines, and our own."""

TASK_NOT_FOUND = "task_not_found"
TASK_NOT_CANCELABLE = "task_not_cancelable"
PUSH_NOT_SUPPORTED = "push_notification_not_supported"
UNSUPPORTED_OPERATION = "unsupported_operation"
CONTENT_TYPE_NOT_SUPPORTED = "content_type_not_supported"
VERSION_NOT_SUPPORTED = "version_not_supported"

NUMBERS = {
    TASK_NOT_FOUND: -32001,
    "session_not_found": -32001,
    "turn_not_found": -32001,
    TASK_NOT_CANCELABLE: -32002,
    PUSH_NOT_SUPPORTED: -32003,
    UNSUPPORTED_OPERATION: -32004,
    CONTENT_TYPE_NOT_SUPPORTED: -32005,
    "unsupported_document": -32005,
    VERSION_NOT_SUPPORTED: -32009,
}
"""The numbers that A2A defines, by the codes of errors."""

REASONS = {
    -32700: "JSON_PARSE_ERROR",
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32009: "VERSION_NOT_SUPPORTED",
}
"""The reasons that A2A defines, by the numbers."""


def task_not_found(task_id: str) -> NotFound:
    """Return the error of a task that does not exist, or of which the caller may not know."""
    return NotFound("Task", shorten(task_id, SHOWN_CHARACTERS))


@dataclass(frozen=True, slots=True)
class ErrorReason:
    """The reason of an error in A2A: the number of JSON-RPC, a name, and who defines that."""

    number: int
    name: str
    domain: str

    @classmethod
    def of(cls, code: str, number: int) -> "ErrorReason":
        """Return the reason of an error with a code, which has a number by default."""
        number = NUMBERS.get(code, number)
        if number in REASONS:
            return cls(number, REASONS[number], DOMAIN)
        return cls(number, code.upper(), OWN_DOMAIN)
