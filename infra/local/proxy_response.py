"""A function's response to a Lambda proxy integration, buffered or streamed.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html and
https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode-lambda.html
"""

import base64
import binascii
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from infra.local.proxy_event import HOP_BY_HOP

DELIMITER = b"\0" * 8
# The delimiter must be within the first 16 KB of the stream.
PRELUDE_LIMIT = 16 * 1024


class MalformedResponse(ValueError):
    """The function's response is not valid; API Gateway responds with 502."""


@dataclass(frozen=True)
class Head:
    """Status and headers of a response."""

    status: int
    headers: list[tuple[str, str]]


def parse_buffered(payload: bytes) -> tuple[Head, bytes]:
    """Return the head and the body of a buffered response."""
    document = parse_object(payload)
    body = document.get("body")
    if body is None:
        return parse_head(document), b""
    if not isinstance(body, str):
        raise MalformedResponse("body is not a string")
    if document.get("isBase64Encoded"):
        try:
            return parse_head(document), base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise MalformedResponse(f"body is not base64: {error}") from error
    return parse_head(document), body.encode()


async def read_prelude(chunks: AsyncIterator[bytes]) -> tuple[Head, bytes]:
    """Return the head of a streamed response, and the bytes after the delimiter in the same chunk."""
    received = b""
    async for chunk in chunks:
        received += chunk
        prelude, found, rest = received.partition(DELIMITER)
        if found and len(prelude) + len(DELIMITER) <= PRELUDE_LIMIT:
            return parse_head(parse_object(prelude)), rest
        if len(received) >= PRELUDE_LIMIT:
            break
    raise MalformedResponse(f"no prelude with eight NUL bytes within the first {PRELUDE_LIMIT} bytes")


def parse_object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError as error:
        raise MalformedResponse(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise MalformedResponse("not a JSON object")
    return document


def parse_head(document: dict[str, Any]) -> Head:
    """Return status and headers. For a name in both maps, multiValueHeaders is used.

    The default content type is application/json.
    """
    status = document.get("statusCode")
    if not (isinstance(status, int | str) and str(status).isdecimal() and 100 <= int(status) <= 599):
        raise MalformedResponse(f"statusCode is {status!r}")
    single = document.get("headers") or {}
    multiple = document.get("multiValueHeaders") or {}
    if not isinstance(single, dict) or not isinstance(multiple, dict):
        raise MalformedResponse("headers and multiValueHeaders must be objects")
    if not all(isinstance(values, list) for values in multiple.values()):
        raise MalformedResponse("a header in multiValueHeaders must be a list")
    several = {name.lower() for name in multiple}
    headers = [(name, text(value)) for name, value in single.items() if name.lower() not in several]
    headers += [(name, text(value)) for name, values in multiple.items() for value in values]
    headers += [("set-cookie", text(cookie)) for cookie in document.get("cookies") or []]
    headers = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP | {"content-length"}]
    if not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(("content-type", "application/json"))
    return Head(int(status), headers)


def text(value: object) -> str:
    """Return a header's value as text; API Gateway accepts all JSON scalars."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise MalformedResponse(f"a header's value is {value!r}")
