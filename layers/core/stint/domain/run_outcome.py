"""The status of a run, and its outcome."""

from enum import StrEnum
from typing import Literal

from stint.domain.errors import StintError
from stint.domain.inference import Usage
from stint.domain.receipts import Consumption
from stint.domain.schema import Schema, Timestamp


class RunStatus(StrEnum):
    """The status of a run of the loop."""

    in_progress = "in_progress"
    """It has no ending yet."""
    awaiting_input = "awaiting_input"
    """It is paused, and waits for results of the client's tools."""
    completed = "completed"
    """The answer is complete, or was cut short for an `IncompleteReason`."""
    failed = "failed"
    """It ended with an error."""
    cancelled = "cancelled"
    """A client or an admin ended it."""


class ErrorInfo(Schema):
    """The reason why a run failed, as in the API's error body."""

    message: str
    type: str
    code: str
    param: str = ""

    @classmethod
    def of(cls, error: StintError) -> "ErrorInfo":
        return cls(message=error.message, type=error.type, code=error.code, param=error.param or "")

    def to_error(self) -> StintError:
        """Return the error again, with a code and type of its own."""
        error = StintError(self.message, code=self.code, param=self.param or None)
        error.type = self.type
        return error


IncompleteReason = Literal["max_output_tokens", "max_tool_calls", "max_infer_iters", "content_filter", "budget"]


class RunOutcome(Schema):
    """The ending of a run, or of a part of it. A turn that is paused or complete can be resumed.

    `incomplete_reason` is the reason why a completed run was cut short.
    """

    status: RunStatus
    completed_at: Timestamp
    usage: Usage | None = None
    error: ErrorInfo | None = None
    incomplete_reason: IncompleteReason | None = None
    consumption: Consumption | None = None
