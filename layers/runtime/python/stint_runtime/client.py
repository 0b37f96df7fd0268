"""Client of the Lambda Runtime API (https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html).

An invocation is answered exactly once, by one of three calls:

    /response          a whole JSON document
    /response, chunked a stream: the head leaves with the first bytes, so until then the invocation can still fail
    /error             a failure, before anything of a response was sent

A failure after the first bytes has no status to change. It is sent as trailers of the stream, whose names the head
declares.

Lambda freezes the process between two invocations, in the request for the next event. So `next` has no timeout, and
each call has a connection of its own: one that is kept could be dropped while the process is frozen. A response that
Lambda no longer wants (the invocation timed out) is a line in the log and not an error: the process can serve the next
event.
"""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from stint.http1.connection import Connection
from stint.http1.parser import HttpResponse, MalformedResponse, ResponseParser
from stint_runtime.errors import FunctionError, log

_ROOT = "/2018-06-01/runtime"
_ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
_ERROR_BODY = "Lambda-Runtime-Function-Error-Body"
_PIECE = 64 * 1024


@dataclass(slots=True)
class Invocation:
    """One event, and the headers of its delivery (names in lower case)."""

    request_id: str
    payload: bytes
    headers: Mapping[str, str]
    received_ms: int

    def take_payload(self) -> bytes:
        """Return the payload, which the invocation then no longer holds: a large one is not needed once parsed."""
        payload, self.payload = self.payload, b""
        return payload

    @property
    def deadline_ms(self) -> int:
        """Return the deadline of the invocation in milliseconds of the Unix epoch."""
        return int(self.headers.get("lambda-runtime-deadline-ms", self.received_ms + 900_000))

    @property
    def path(self) -> str:
        return f"{_ROOT}/invocation/{self.request_id}"

    @property
    def echo(self) -> dict[str, str]:
        """Return the headers to repeat in the response; Lambda's newer runtimes return the invocation id."""
        value = self.headers.get("lambda-runtime-invocation-id")
        return {"Lambda-Runtime-Invocation-Id": value} if value else {}


class RuntimeApi:
    """The client of one Runtime API address (`host:port`)."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def next(self, arrived: Callable[[], None] | None = None) -> Invocation:
        """Wait for an event, without a timeout: the process is frozen in this call.

        `arrived` is called once its first byte is here, from when on the event is lost if the call is cancelled.
        """
        answer = await self._call("GET", f"{_ROOT}/invocation/next", arrived=arrived)
        if answer.status != 200:
            raise OSError(f"The Runtime API answered {answer.status} to /next: {answer.body[:500]!r}")
        return Invocation(
            answer.headers["lambda-runtime-aws-request-id"],
            answer.body,
            answer.headers,
            received_ms=time.time_ns() // 1_000_000,
        )

    async def respond(self, invocation: Invocation, payload: bytes) -> None:
        """Send a buffered response with JSON."""
        headers = {"Content-Type": "application/json", **invocation.echo}
        await self._post(f"{invocation.path}/response", payload, headers)

    async def fail(self, invocation: Invocation, error: FunctionError) -> None:
        """Report a failure. This is not allowed once a response has begun."""
        headers = {_ERROR_TYPE: error.reason, **invocation.echo}
        await self._post(f"{invocation.path}/error", error.to_json(), headers)

    async def fail_init(self, error: FunctionError) -> None:
        """Report that the function cannot start. The process must then exit."""
        await self._post(f"{_ROOT}/init/error", error.to_json(), {_ERROR_TYPE: error.reason})

    async def restored(self) -> None:
        """Report that the process is ready for a snapshot. This call returns in the restored process."""
        answer = await self._call("GET", f"{_ROOT}/restore/next")
        if answer.status != 200:
            raise OSError(f"The Runtime API answered {answer.status} to /restore/next")

    async def fail_restore(self, error: FunctionError) -> None:
        """Report that the restored process cannot continue. It must then exit."""
        await self._post(f"{_ROOT}/restore/error", error.to_json(), {_ERROR_TYPE: error.reason})

    async def stream(self, invocation: Invocation) -> "ResponseStream":
        """Open a streamed response. Nothing is sent before its first write."""
        connection = await self._connect()
        headers = {
            "Content-Type": "application/vnd.awslambda.http-integration-response",
            "Lambda-Runtime-Function-Response-Mode": "streaming",
            "Transfer-Encoding": "chunked",
            "Trailer": f"{_ERROR_TYPE}, {_ERROR_BODY}",
            "Connection": "close",
            **invocation.echo,
        }
        head = self._head("POST", f"{invocation.path}/response", headers)
        return ResponseStream(invocation.request_id, head, connection)

    async def _post(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a POST and log errors: the process can serve the next invocation even if Lambda has dropped this one."""
        try:
            answer = await self._call("POST", path, body, headers)
        except OSError as error:
            log("ERROR", f"The Runtime API did not accept POST {path}: {error}")
        else:
            _log_refusal(path, answer)

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        arrived: Callable[[], None] | None = None,
    ) -> HttpResponse:
        length = {"Content-Length": str(len(body))} if method == "POST" else {}
        head = self._head(method, path, {**(headers or {}), **length, "Connection": "close"})
        connection = await self._connect()
        try:
            connection.start(head + body, None, _parser(), arrived=arrived)
            return await connection.read_response()
        except MalformedResponse as error:
            raise OSError(f"The Runtime API's response is malformed: {error}") from error
        finally:
            connection.abort()

    async def _connect(self) -> Connection:
        host, _, port = self._address.rpartition(":")
        _, connection = await asyncio.get_running_loop().create_connection(Connection, host, int(port))
        return connection

    def _head(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        return f"{method} {path} HTTP/1.1\r\nHost: {self._address}\r\n{lines}\r\n".encode("latin-1")


def _parser() -> ResponseParser:
    # An event can be larger than its limit of 6 MB, since it is JSON that escapes characters.
    return ResponseParser(until_close=True, max_body=None)


class ResponseStream:
    """A streamed response: chunks, and an end with or without an error.

    Lambda may respond or disconnect early if it has lost the invocation. Later writes are discarded.
    """

    def __init__(self, request_id: str, head: bytes, connection: Connection) -> None:
        self._request_id = request_id
        self._connection = connection
        self._head = head
        self._begun = False

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send bytes at once, with the terminating chunk after the last ones."""
        # A large body is sent in pieces, because each write copies its data.
        left = memoryview(data)
        while len(left) > _PIECE:
            await self._send(_chunk(left[:_PIECE]))
            left = left[_PIECE:]
        await self._send(_chunk(left) + (b"0\r\n\r\n" if last else b""))

    async def fail(self, error: FunctionError) -> None:
        """End the body with error trailers (see "mid-stream errors" in runtimes-custom)."""
        body = b64encode(error.to_json()).decode()
        trailers = f"{_ERROR_TYPE}: {error.reason}\r\n{_ERROR_BODY}: {body}\r\n"
        await self._send(b"0\r\n" + trailers.encode() + b"\r\n")

    async def close(self) -> None:
        """Wait until Lambda has received the whole response."""
        try:
            _log_refusal("/response", await self._connection.read_response(), self._request_id)
        except (OSError, MalformedResponse) as error:
            log("WARNING", f"Lambda dropped the response: {error}", requestId=self._request_id)
        finally:
            self._connection.abort()

    async def _send(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            with suppress(OSError):  # `close` logs it
                self._connection.start(self._head + data, None, _parser())
        elif data:
            await self._connection.write(data)


def _chunk(data: memoryview) -> bytes:
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n")) if data else b""


def _log_refusal(path: str, answer: HttpResponse, request_id: str | None = None) -> None:
    if answer.status >= 300:
        body = answer.body[:500].decode("utf-8", "replace")
        log("WARNING", f"The Runtime API refused POST {path}: {answer.status} {body}", requestId=request_id)
