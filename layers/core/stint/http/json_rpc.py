"""JSON-RPC 2.0 over HTTP: one request per body, and its answer. MCP and A2A are made of it.

A message is read strictly, because an id is echoed and a method is logged:

    the body                                             the code of the answer
    is not JSON, or cannot be stored                     -32700
    is a batch, has no method, or another version        -32600
    has an id that is no short string and no integer     -32600, with the id null
    has params that are no object                        -32602

Errors below are a StintError. `code_of` has the table of their codes; the answer's `data` is the error object of all
other APIs, with its code and its advice, so a client that knows Stint reads the same. A protocol passes the codes that
it defines itself by the code of the error.

No answer of a call is stored for its idempotency key, because it has the id of one request (docs/decisions.md, entry
163).
"""

import json
import logging
from collections.abc import Mapping
from json import JSONDecodeError
from typing import Any, NoReturn

from fastapi import Request, Response

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, StintError, Unexpected, shorten
from stint.domain.schema import Schema
from stint.http.errors import body_of, headers_of, status_of

logger = logging.getLogger(__name__)

VERSION = "2.0"
PARSE_ERROR, INVALID_MESSAGE, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
NOT_ALLOWED, OUT_OF_BUDGET, IN_CONFLICT, LIMITED, UNAVAILABLE = -32010, -32011, -32012, -32013, -32014
"""Our own codes, in the range -32000 to -32099 of servers. MCP and A2A define none of -32010 to -32019."""

CODES = {
    400: INVALID_PARAMS,
    401: NOT_ALLOWED,
    402: OUT_OF_BUDGET,
    403: NOT_ALLOWED,
    404: INVALID_PARAMS,
    409: IN_CONFLICT,
    413: INVALID_PARAMS,
    415: INVALID_MESSAGE,
    422: INVALID_PARAMS,
    429: LIMITED,
    503: UNAVAILABLE,
    504: UNAVAILABLE,
}
"""The code of an error by its HTTP status in `stint.http.errors`. Others are internal errors."""

LONGEST_ID, LONGEST_METHOD, MOST_BITS = 256, 128, 64
"""Maximum characters of an id and of a method, and maximum bits of an id that is a number."""

MessageId = str | int | None


class JsonRpcError(InvalidRequest):
    """A message that cannot be handled. `number` is the code of JSON-RPC, `data` replaces the error object."""

    def __init__(
        self,
        number: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        data: Any = None,
        message_id: MessageId = None,
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.number, self.data, self.message_id = number, data, message_id


@dataclass(frozen=True, slots=True)
class JsonRpcMessage:
    """A request, or a notification, which has no id and gets no result."""

    method: str
    params: dict[str, Any]
    id: MessageId = None
    is_notification: bool = False


async def read_value(request: Request) -> Any:
    """Return the JSON of a body. Raises JsonRpcError."""
    try:
        return await request.json()
    except JSONDecodeError as error:
        raise JsonRpcError(PARSE_ERROR, f"The body cannot be read as JSON: {error.msg}") from None


def parse_message(value: Any) -> JsonRpcMessage:
    """Return the message in a parsed body. Raises JsonRpcError with the id, if that could be read."""
    if isinstance(value, list):
        raise JsonRpcError(INVALID_MESSAGE, "The body is a batch. Send one JSON-RPC message per HTTP request.")
    if not isinstance(value, dict):
        raise JsonRpcError(INVALID_MESSAGE, "The body must be a JSON-RPC 2.0 message: an object with jsonrpc, method.")
    found = read_id(value)

    def refuse(number: int, message: str, param: str) -> NoReturn:
        raise JsonRpcError(number, message, param=param, message_id=found)

    if value.get("jsonrpc") != VERSION:
        refuse(INVALID_MESSAGE, 'jsonrpc must be "2.0".', "jsonrpc")
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str) or not 0 < len(method) <= LONGEST_METHOD:
        refuse(INVALID_MESSAGE, f"method must be a string of 1 to {LONGEST_METHOD} characters.", "method")
    if params is not None and not isinstance(params, dict):
        refuse(INVALID_PARAMS, "params must be an object: parameters by position are not supported.", "params")
    return JsonRpcMessage(method, params or {}, found, is_notification="id" not in value)


def read_id(value: Mapping[str, Any]) -> MessageId:
    """Return the id of a message; None if it has none. Raises JsonRpcError."""
    found = value.get("id")
    match found:
        case None:
            return None
        case str() if len(found) <= LONGEST_ID:
            return found
        case int() if not isinstance(found, bool) and found.bit_length() <= MOST_BITS:
            return found
    message = f"id must be a string of at most {LONGEST_ID} characters, or an integer of at most {MOST_BITS} bits."
    raise JsonRpcError(INVALID_MESSAGE, message, param="id")


def is_reply(value: Any) -> bool:
    """Return whether a parsed body is a client's answer to a request of the server."""
    return isinstance(value, dict) and "method" not in value and ("result" in value or "error" in value)


def unknown_method(message: JsonRpcMessage, known: tuple[str, ...]) -> JsonRpcError:
    """Return the error of a method that a protocol does not have here."""
    text = f"The method {shorten(message.method, 80)!r} is not supported. The methods are {', '.join(known)}."
    return JsonRpcError(METHOD_NOT_FOUND, text, code="method_not_found", param="method", message_id=message.id)


def code_of(error: StintError, codes: Mapping[str, int] | None = None) -> int:
    """Return the code of JSON-RPC. `codes` are those that a protocol defines, by the code of the error."""
    if isinstance(error, JsonRpcError):
        return error.number
    return (codes or {}).get(error.code) or CODES.get(status_of(error), INTERNAL_ERROR)


def known_error(error: Exception) -> StintError:
    """Return an error that a caller may read; of any other, the log has the details."""
    if isinstance(error, StintError):
        return error
    logger.error("An unexpected error occurred in a JSON-RPC request", exc_info=error)
    return Unexpected()


def encode_result(message_id: MessageId, result: Schema) -> bytes:
    """Return the message with a result, without its null fields."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode_id(message_id), result.to_json(exclude_none=True))


def encode_error(message_id: MessageId, error: Exception, codes: Mapping[str, int] | None = None) -> bytes:
    """Return the message with an error. `data` is the error object, unless the error has its own."""
    known = known_error(error)
    data = known.data if isinstance(known, JsonRpcError) and known.data is not None else body_of(known)
    body = json.dumps({"code": code_of(known, codes), "message": known.message, "data": data})
    return b'{"error":%b,"jsonrpc":"2.0","id":%b}' % (body.encode(), encode_id(message_id))


def encode_notification(method: str, params: Schema) -> bytes:
    """Return a message that gets no answer, without null fields."""
    fields = json.dumps(method).encode(), params.to_json(exclude_none=True)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % fields


def encode_id(message_id: MessageId) -> bytes:
    return json.dumps(message_id).encode()


def answer_result(message_id: MessageId, result: Schema) -> Response:
    return Response(encode_result(message_id, result), media_type="application/json")


def answer_error(
    message_id: MessageId, error: Exception, *, status: int = 200, codes: Mapping[str, int] | None = None
) -> Response:
    """Return the response of an error. Its headers say when to retry, and what to authorize."""
    known = known_error(error)
    body = encode_error(message_id, known, codes)
    return Response(body, status, headers=headers_of(known), media_type="application/json")
