"""Calls of A2A by JSON-RPC: the methods, their versions, and the answers of JSON-RPC with the protocol's errors.

An error within the protocol has the HTTP status 200, as JSON-RPC and the clients of A2A expect. What is refused before
that has its own status: a missing key, a scope, an unknown agent, a body that is too large.
"""

import re
from typing import Any, TypeVar

from fastapi import Response
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stint.a2a.cards import PROTOCOL_VERSION
from stint.a2a.errors import (
    BAD_REQUEST,
    ERROR_INFO,
    NUMBERS,
    UNSUPPORTED_OPERATION,
    VERSION_NOT_SUPPORTED,
    ErrorReason,
)
from stint.a2a.messages import no_push
from stint.a2a.schemas import A2AObject, A2ARequest, SendMessageResult
from stint.domain.errors import InvalidRequest, StintError, shorten
from stint.domain.schema import Schema
from stint.domain.validation import message_of
from stint.http.errors import headers_of
from stint.http.json_rpc import (
    INVALID_MESSAGE,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    JsonRpcError,
    JsonRpcMessage,
    MessageId,
    code_of,
    encode_error,
    encode_result,
    known_error,
)

P = TypeVar("P", bound=A2ARequest)

VERSION_HEADER = "A2A-Version"
"""The header, or the query parameter, with the version of a call."""

VERSION = re.compile(r"([0-9]{1,4}\.[0-9]{1,4})(\.[0-9]{1,4})?")
WITHOUT_VERSION = "0.3"
"""The version of a request that names none."""

METHODS = ("SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask")
PUSH_METHODS = frozenset(
    f"{verb}TaskPushNotificationConfig{plural}"
    for verb, plural in (("Create", ""), ("Get", ""), ("List", "s"), ("Delete", ""))
)
EXTENDED_CARD = "GetExtendedAgentCard"
OLD_METHODS = ("message/", "tasks/", "agent/")
"""The beginnings of the methods of 0.3 and earlier versions."""

MOST_PROBLEMS = 20


class TaskAnswer(Schema):
    """The answer to SendMessage: a message of JSON-RPC with the task."""

    jsonrpc: str = "2.0"
    id: str | int | None
    result: SendMessageResult


def check_call(message: JsonRpcMessage, version: str) -> None:
    """Refuse a call that no agent takes. `version` is the one that it names. Raises InvalidRequest."""
    method = message.method
    if message.is_notification:
        raise JsonRpcError(INVALID_MESSAGE, "The request has no id. Each call of A2A needs one.", param="id")
    if method.startswith(OLD_METHODS):
        text = f"{shorten(method, 80)!r} is a method of A2A 0.3. This server speaks A2A {PROTOCOL_VERSION}: "
        raise JsonRpcError(METHOD_NOT_FOUND, f"{text}{', '.join(METHODS)}.", code="method_not_found", param="method")
    if method not in METHODS and method not in PUSH_METHODS and method != EXTENDED_CARD:
        text = f"The method {shorten(method, 80)!r} is unknown. The methods are {', '.join(METHODS)}."
        raise JsonRpcError(METHOD_NOT_FOUND, text, code="method_not_found", param="method")
    check_version(version)
    if method in PUSH_METHODS:
        raise no_push("method")
    if method == EXTENDED_CARD:
        raise InvalidRequest(
            "Agents have no extended card: the card is whole.", code=UNSUPPORTED_OPERATION, param="method"
        )


def check_version(given: str) -> None:
    """Refuse a call of another version. Raises InvalidRequest."""
    version = given.strip() or WITHOUT_VERSION
    found = VERSION.fullmatch(version)
    if found is not None and found[1] == PROTOCOL_VERSION:
        return
    named = shorten(version, 40) if given.strip() else f"{WITHOUT_VERSION} (no A2A-Version header)"
    message = f"A2A {named} is not supported. Send the header A2A-Version: {PROTOCOL_VERSION}."
    raise InvalidRequest(message, code=VERSION_NOT_SUPPORTED, param=VERSION_HEADER)


def read_params(kind: type[P], message: JsonRpcMessage) -> P:
    """Return the parameters of a call. Raises InvalidRequest, which names the fields."""
    try:
        return kind.model_validate(message.params)
    except ValidationError as error:
        problems = error.errors()[:MOST_PROBLEMS]
        fields = [path_of(problem) for problem in problems]
        text = "; ".join(f"{field}: {message_of(problem)}" for field, problem in zip(fields, problems, strict=True))
        raise InvalidRequest(shorten(text, 2_000), param=fields[0]) from None


def path_of(problem: ErrorDetails) -> str:
    """Return the field of a problem, such as `message.parts[0].text`."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
    return shorten(path.removeprefix("."), 200) or "params"


def as_a2a(error: Exception) -> tuple[StintError, JsonRpcError]:
    """Return an error that a caller may read, and its form in A2A."""
    known = known_error(error)
    reason = ErrorReason.of(known.code, code_of(known))
    metadata = {"code": known.code} | ({"param": known.param} if known.param else {})
    if reason.number == NUMBERS[VERSION_NOT_SUPPORTED]:
        metadata["supported"] = PROTOCOL_VERSION
    details: list[dict[str, Any]] = [
        {"@type": ERROR_INFO, "reason": reason.name, "domain": reason.domain, "metadata": metadata}
    ]
    if reason.number == INVALID_PARAMS and known.param:
        violations = [{"field": known.param, "description": known.message}]
        details.append({"@type": BAD_REQUEST, "fieldViolations": violations})
    form = JsonRpcError(reason.number, known.message, code=known.code, param=known.param, data=details)
    return known, form


def answer_failure(message_id: MessageId, error: Exception) -> Response:
    """Return the response of an error within the protocol."""
    known, form = as_a2a(error)
    return Response(encode_error(message_id, form), headers=headers_of(known), media_type="application/json")


def encode_failure(message_id: MessageId, error: Exception) -> bytes:
    """Return an error after the first byte of a response."""
    return encode_error(message_id, as_a2a(error)[1])


def answer(message_id: MessageId, result: A2AObject) -> Response:
    return Response(encode_result(message_id, result), media_type="application/json")
