"""The status of a run, and how it ended."""

from enum import StrEnum
from typing import Literal

from stint.domain.errors import StintError
from stint.domain.inference import Usage
from stint.domain.schema import Schema, Timestamp


class RunStatus(StrEnum):
    """The status of a run of the loop."""

    in_progress = "in_progress"
    awaiting_input = "awaiting_input"
    completed = "completed"
    failed = "failed"
    cancelled = "cancelled"


class ErrorInfo(Schema):
    """Why a turn failed, in the words of the API's error body."""

    message: str
    type: str
    code: str
    param: str = ""

    @classmethod
    def of(cls, error: StintError) -> "ErrorInfo":
        return cls(message=error.message, type=error.type, code=error.code, param=error.param or "")


IncompleteReason = Literal["max_output_tokens", "max_tool_calls", "max_infer_iters", "content_filter"]


class RunOutcome(Schema):
    """How a run ended, or a part of it: a turn goes on when it is resumed after a pause, or when it was complete.

    `incomplete_reason` is what cut a completed run short.
    """

    status: RunStatus
    completed_at: Timestamp
    usage: Usage | None = None
    error: ErrorInfo | None = None
    incomplete_reason: IncompleteReason | None = None
