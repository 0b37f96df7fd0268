"""Conversion of the errors of servers with OpenAI's APIs to errors of models.

An error is first read into a `Refusal`, whatever form the server gives it, and then explained to the caller. The text
is redacted and cut: a server may quote the key, or send pages of HTML.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    ModelUnauthorized,
    RateLimited,
    StintError,
)
from stint.domain.json_text import parse_leniently
from stint.domain.redaction import Redactor
from stint.providers.refusals import REFUSED_STATUSES, find_field, is_about_length, parse_retry_after, shorten

REPEATED = frozenset({429, 500, 502, 503, 504, 529})
NO_QUOTA = "insufficient_quota"
OVERLOADED = {"overloaded_error", "server_is_overloaded", ModelOverloaded.code}
"""Codes or types of errors in a stream, which has no status any more."""
FIELDS = {
    "top_k": "sampling_params",
    "repetition_penalty": "sampling_params",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "reasoning_effort": "reasoning.effort",
    "parallel_tool_calls": "parallel_tool_calls",
}
"""Parameters that some servers or models lack, with the caller's field for each."""
HINTS = {
    401: "check {key}",
    403: "check {key} and its permissions",
    404: "check the model id and {base_url}, which usually ends in /v1",
    405: "check {base_url}, which usually ends in /v1",
}
MODEL = re.compile(r"(?i)model|deployment|endpoints found|function '|not persisted")
OPERATIONS = ("/chat/completions", "/responses")
OTHER_OPERATION = re.compile(r"supported on this route|does not support the '/|only supported in v1/responses")
IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{1,63}")
WRONG_REQUEST = re.compile(r"^(?:invalid|unsupported)_(?!api_key)|image")
"""Codes of answers that failed because of their request."""
LONGEST_PARAM = 100


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server, as error messages name them."""

    base_url: str = "OPENAI_BASE_URL"
    key: str = "OPENAI_API_KEY or, in AWS, the secret of STINT_OPENAI_SECRET_ARN"

    def hint(self, status: int | None) -> str:
        """Return the setting to check after an error; empty if it is none of them."""
        is_redirect = status is not None and 300 <= status < 400
        hint = "check {base_url}" if is_redirect else HINTS.get(status or 0, "")
        return hint.format(base_url=self.base_url, key=self.key)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of the server: an HTTP response, or an error object in the stream."""

    status: int | None
    message: str
    code: str = ""
    kind: str = ""
    param: str = ""
    retry_after: float | None = None

    @property
    def may_be_repeated(self) -> bool:
        return self.status in REPEATED and not self.is_about_quota and not self.is_about_length

    @property
    def is_about_quota(self) -> bool:
        return NO_QUOTA in (self.code, self.kind)

    @property
    def is_about_length(self) -> bool:
        return self.status != 429 and is_about_length(f"{self.code} {self.message}")

    @property
    def may_be_about_field(self) -> bool:
        return self.status in (400, 422) and not self.is_about_length

    @property
    def is_about_operation(self) -> bool:
        """Whether the server lacks the operation, or has it for other models only.

        Bedrock's endpoints, and OpenAI's chat completions, refuse a model that another operation has with these words.
        """
        return self.is_about_server or OTHER_OPERATION.search(self.text) is not None

    @property
    def is_about_server(self) -> bool:
        """Whether the server lacks the operation. The status may also be about the model, which the error names."""
        if self.status not in (404, 405) or self.param or OTHER_OPERATION.search(self.text):
            return False
        words = (word for word in self.text.split() if not any(path in word for path in OPERATIONS))
        return MODEL.search(" ".join(words)) is None  # URLs may have the word, too

    @property
    def text(self) -> str:
        return f"{self.code} {self.kind} {self.param} {self.message}"

    @property
    def is_about_request(self) -> bool:
        """Whether the error is about the request. In a stream, the type or the code of the error shows it."""
        if self.status is not None:
            return self.status in REFUSED_STATUSES
        return self.kind == InvalidRequest.type or WRONG_REQUEST.search(self.code) is not None


class ProviderFailure(Exception):
    """A failed call, with the error to raise and whether a retry can help.

    With `at_once`, it was not the server that failed: the call is repeated without a pause, and does not count.
    `of_connection`: the connection failed, before or during the response.
    """

    def __init__(
        self,
        error: StintError,
        *,
        may_repeat: bool = False,
        at_once: bool = False,
        of_connection: bool = False,
        refusal: Refusal | None = None,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_repeat = may_repeat
        self.at_once = at_once
        self.of_connection = of_connection
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class ErrorReader:
    """Reads the errors of a server. The `key` of the request is redacted in them."""

    settings: ServerSettings
    key: str

    def read(self, status: int | None, body: str, headers: Mapping[str, str]) -> ProviderFailure:
        """Return the failure that a response is, or an error in a stream, which has no status."""
        refusal = read_refusal(status, body, headers, self.key)
        error = explain(refusal, self.settings)
        return ProviderFailure(error, may_repeat=refusal.may_be_repeated, refusal=refusal)


def read_refusal(status: int | None, body: str, headers: Mapping[str, str], key: str) -> Refusal:
    """Read an error in the forms of OpenAI, vLLM, Ollama, FastAPI and AWS, or else as plain text.

    `key` is redacted in the message, which is cut after 500 characters.
    """
    try:
        payload = parse_leniently(body)
    except ValueError:
        payload = None
    error = payload.get("error", payload) if isinstance(payload, dict) else None
    fields: dict[str, Any] = error if isinstance(error, dict) else {}
    message = error if isinstance(error, str) else fields.get("message") or fields.get("detail") or body.strip()
    code = str(fields.get("code") or "")
    # Some servers repeat the status as the code of an error in a stream.
    if status is None and re.fullmatch(r"[1-5]\d\d", code):
        status = int(code)
    redactor = Redactor([key])
    return Refusal(
        status=status,
        message=shorten(redactor.text(message if isinstance(message, str) else json.dumps(message))),
        code=code,
        kind=str(fields.get("type") or ""),
        param=redactor.text(_param(fields) or _location(fields))[:LONGEST_PARAM],
        retry_after=parse_retry_after(headers.get("retry-after")),
    )


def explain(refusal: Refusal, settings: ServerSettings) -> StintError:
    """Convert a refusal to an error."""
    status = refusal.status
    what = f"The model's provider answered {status}" if status else "The model's provider reported an error"
    hint = settings.hint(status)
    told = "" if status in (401, 403) else f": {refusal.message or 'no message'}"  # it may contain a part of the key
    message = f"{what}{told}{f' ({hint})' if hint else ''}"
    if refusal.is_about_length:
        return ContextLengthExceeded(message, param="messages", upstream_status=status)
    if refusal.is_about_request:
        return _explain_request(refusal, message)
    if status in (401, 403):
        return ModelUnauthorized(message, upstream_status=status)
    if status == 429 or refusal.is_about_quota or refusal.code == RateLimited.code:
        code = NO_QUOTA if refusal.is_about_quota else None
        return RateLimited(message, code=code, upstream_status=status, retry_after=refusal.retry_after)
    if status in (503, 529) or OVERLOADED & {refusal.code, refusal.kind}:
        return ModelOverloaded(message, upstream_status=status, retry_after=refusal.retry_after)
    return ModelError(message, upstream_status=status)


def _explain_request(refusal: Refusal, message: str) -> InvalidRequest:
    for parameter, field in FIELDS.items():
        if parameter == refusal.param or re.search(rf"\b{parameter}\b", refusal.message):
            return InvalidRequest(f"{message} (this provider does not support this {parameter})", param=field)
    code = refusal.code if IDENTIFIER.fullmatch(refusal.code) else None
    if refusal.status == 404:
        return InvalidRequest(message, code=code or "model_not_found", param=refusal.param or "model")
    return InvalidRequest(message, code=code, param=refusal.param or find_field(refusal.message))


def _param(fields: Mapping[str, Any]) -> str:
    """Return the field that an error names. LiteLLM writes a missing one as Python's `None`."""
    param = str(fields.get("param") or "")
    return "" if param == "None" else param


def _location(fields: Mapping[str, Any]) -> str:
    """Return the location in a FastAPI error, such as `messages[0].content`."""
    message = fields.get("message")
    details = fields.get("detail") or (message.get("detail") if isinstance(message, dict) else None)
    first = details[0] if isinstance(details, list) and details else None
    place = first.get("loc") if isinstance(first, dict) else None
    if not isinstance(place, list) or place[:1] != ["body"]:
        return ""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[1:]).lstrip(".")
