"""Responses to Lambda, streamed or buffered.

A streamed response begins with a prelude for API Gateway: status and headers as JSON, then eight zero bytes, then the
body as it is. The prelude is sent with the first bytes of the body, not when the app sends its headers: an app that
fails between both gets an error status, and a client never sees headers without a body.

    nothing was sent       `fail` reports an error to Lambda, which answers with a status
    the prelude was sent   `fail` adds trailers; the client sees a body that ends early
    the body has ended     `fail` is not called

A buffered response is for `sam local`, which cannot stream: it never has the zero bytes in it.
"""

import json
from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Protocol

from stint_runtime.client import Invocation, ResponseStream, RuntimeApi
from stint_runtime.errors import FunctionError

Headers = list[tuple[bytes, bytes]]

_DELIMITER = bytes(8)
_PRELUDE_LIMIT = 16 * 1024


class Response(Protocol):
    """A response in progress. `write` with `last` completes it."""

    async def write(self, status: int, headers: Headers, data: bytes, *, last: bool) -> None: ...

    async def fail(self, error: FunctionError) -> None: ...

    async def close(self) -> None: ...


class StreamedResponse:
    """A streamed response: prelude, delimiter and body are sent at once.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/response-transfer-mode-lambda.html
    """

    def __init__(self, api: RuntimeApi, invocation: Invocation) -> None:
        self._api = api
        self._invocation = invocation
        self._stream: ResponseStream | None = None

    async def write(self, status: int, headers: Headers, data: bytes, *, last: bool) -> None:
        """Send bytes at once, the first ones with the prelude, so that an earlier failure gets an error status."""
        if not self._stream:
            data = prelude(status, headers) + data
            self._stream = await self._api.stream(self._invocation)
        await self._stream.write(data, last=last)

    async def fail(self, error: FunctionError) -> None:
        """Report a failure: on the error path if nothing was sent, otherwise in the trailers."""
        if self._stream:
            await self._stream.fail(error)
        else:
            await self._api.fail(self._invocation, error)

    async def close(self) -> None:
        """Wait until Lambda has received the response."""
        if self._stream:
            await self._stream.close()


class BufferedResponse:
    """A response that is collected and sent as an ordinary proxy response."""

    def __init__(self, api: RuntimeApi, invocation: Invocation) -> None:
        self._api = api
        self._invocation = invocation
        self._body = bytearray()

    async def write(self, status: int, headers: Headers, data: bytes, *, last: bool) -> None:
        """Add bytes, and send the response after the last ones."""
        self._body += data
        if last:
            answer = {**_head(status, headers), **_body(bytes(self._body))}
            await self._api.respond(self._invocation, json.dumps(answer).encode())

    async def fail(self, error: FunctionError) -> None:
        """Report a failure on the error path; nothing was sent."""
        await self._api.fail(self._invocation, error)

    async def close(self) -> None:
        """Do nothing: the response was sent as a whole."""


def prelude(status: int, headers: Headers) -> bytes:
    """Return status, headers and the delimiter. API Gateway searches only the first 16 KB for the delimiter."""
    text = json.dumps(_head(status, headers), separators=(",", ":")).encode("ascii") + _DELIMITER
    if len(text) > _PRELUDE_LIMIT:
        raise ValueError(f"The response headers take {len(text)} bytes; API Gateway allows {_PRELUDE_LIMIT}.")
    return text


def _head(status: int, headers: Iterable[tuple[bytes, bytes]]) -> dict[str, Any]:
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    head: dict[str, Any] = {
        "statusCode": status,
        "headers": {name: found[0] for name, found in values.items() if len(found) == 1},
    }
    if repeated := {name: found for name, found in values.items() if len(found) > 1}:
        head["multiValueHeaders"] = repeated
    return head


def _body(data: bytes) -> dict[str, Any]:
    try:
        return {"body": data.decode(), "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {"body": b64encode(data).decode(), "isBase64Encoded": True}
