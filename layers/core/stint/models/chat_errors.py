"""What chat completions servers answer when they cannot, as model errors."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stint.domain.errors import ContextLengthExceeded, InvalidRequest, ModelError, ModelOverloaded, StintError
from stint.models.refusals import is_about_length, parse_retry_after, shorten

REPEATED = frozenset({429, 500, 502, 503, 504})
FIELDS = {
    "top_k": "sampling_params",
    "repetition_penalty": "sampling_params",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "reasoning_effort": "reasoning.effort",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Parameters that some servers or models lack, with the field by which a caller asks for them."""
HINTS = {
    401: "check OPENAI_API_KEY",
    403: "check OPENAI_API_KEY and what it is allowed to use",
    404: "check the model id and OPENAI_BASE_URL, which mostly ends in /v1",
    405: "check OPENAI_BASE_URL, which mostly ends in /v1",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error as the server described it: an HTTP answer, or an error object in the stream."""

    status: int | None
    message: str
    code: str = ""
    param: str = ""
    retry_after: float | None = None

    @property
    def may_be_repeated(self) -> bool:
        return self.status in REPEATED and self.code != "insufficient_quota" and not self.is_about_length

    @property
    def is_about_length(self) -> bool:
        return self.status != 429 and is_about_length(f"{self.code} {self.message}")


class Failure(Exception):
    """A call that failed: what to raise in the end, and whether it is worth repeating."""

    def __init__(self, error: StintError, *, may_repeat: bool = False, refusal: Refusal | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_repeat = may_repeat
        self.refusal = refusal

    @classmethod
    def refused(cls, refusal: Refusal) -> "Failure":
        return cls(explain(refusal), may_repeat=refusal.may_be_repeated, refusal=refusal)


def read_refusal(status: int | None, body: str, headers: Mapping[str, str], key: str) -> Refusal:
    """Read an error in the forms of OpenAI, vLLM, Ollama, FastAPI and AWS; anything else is its own message.

    `key` is struck out of the message, and it is cut after 500 characters.
    """
    try:
        payload = json.loads(body)
    except ValueError:
        payload = None
    error = payload.get("error", payload) if isinstance(payload, dict) else None
    fields: dict[str, Any] = error if isinstance(error, dict) else {}
    message = error if isinstance(error, str) else fields.get("message") or fields.get("detail") or body.strip()
    code = fields.get("code")
    if status is None and str(code).isdecimal():
        status = int(str(code))
    return Refusal(
        status=status,
        message=shorten(_strike(message if isinstance(message, str) else json.dumps(message), key)),
        code=str(code or fields.get("type") or ""),
        param=str(fields.get("param") or ""),
        retry_after=parse_retry_after(headers.get("retry-after")),
    )


def explain(refusal: Refusal) -> StintError:
    """Make the error that a refusal means."""
    status = refusal.status
    what = f"The model's provider answered {status}" if status else "The model's provider reported an error"
    hint = HINTS.get(status or 0) or ("check OPENAI_BASE_URL" if status and 300 <= status < 400 else "")
    told = "" if status in (401, 403) else f": {refusal.message or 'no message'}"  # it may repeat a part of the key
    message = f"{what}{told}{f' ({hint})' if hint else ''}"
    if refusal.is_about_length:
        return ContextLengthExceeded(message, upstream_status=status)
    if status in (400, 422):
        for parameter, field in FIELDS.items():
            if parameter == refusal.param or re.search(rf"\b{parameter}\b", refusal.message):
                return InvalidRequest(f"{message} (this provider does not take {parameter} so)", param=field)
    if refusal.code == "insufficient_quota":
        return ModelError(message, upstream_status=status)
    if status in (429, 503) or refusal.code in ("rate_limit_exceeded", "overloaded_error"):
        return ModelOverloaded(message, upstream_status=status, retry_after=refusal.retry_after)
    return ModelError(message, upstream_status=status)


def _strike(message: str, key: str) -> str:
    return message.replace(key, "***") if key else message
