"""Errors in the format of the Runtime API."""

import json
import re
import sys
import time
import traceback
from dataclasses import dataclass

_REASON = re.compile(r"[A-Z][A-Za-z]+")
_MESSAGE_LIMIT = 4096
_STACK_LIMIT = 40


class DeadlineExceeded(Exception):
    """The app was still running when the time for the invocation ran out."""


class ResponseIncomplete(Exception):
    """The app returned before its response was complete."""


class Stopped(Exception):
    """The process was stopped during an invocation."""


class InitError(Exception):
    """The process cannot start; `error` is the one to report."""

    def __init__(self, error: "FunctionError") -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class FunctionError:
    """A failure in Lambda's format.

    `reason` is the `category.reason` of the header Lambda-Runtime-Function-Error-Type. The other fields are the JSON
    body (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).
    """

    reason: str
    type: str
    message: str
    stack: tuple[str, ...] = ()

    @classmethod
    def of(cls, exception: BaseException, reason: str | None = None) -> "FunctionError":
        """Describe an exception. Message and stack are truncated because the error is also sent as a header."""
        name = type(exception).__name__
        return cls(
            reason=reason or f"Function.{name if _REASON.fullmatch(name) else 'UnknownReason'}",
            type=name,
            message=str(exception)[:_MESSAGE_LIMIT],
            stack=tuple(traceback.format_exception(exception)[-_STACK_LIMIT:]),
        )

    def to_json(self) -> bytes:
        """Return the body for the Runtime API."""
        body = {"errorMessage": self.message, "errorType": self.type, "stackTrace": self.stack}
        return json.dumps(body).encode()


def log(level: str, message: str, **fields: object) -> None:
    """Write one JSON line to stderr."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {"timestamp": now, "level": level, "logger": "stint_runtime", "message": message, **fields}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()


def log_failure(error: FunctionError, request_id: str | None) -> None:
    """Log a failure. It is logged once, where it is reported."""
    fields = {"errorType": error.type, "errorReason": error.reason, "stackTrace": error.stack}
    log("ERROR", error.message, requestId=request_id, **fields)
