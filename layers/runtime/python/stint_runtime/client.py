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
from dataclasses import dataclass

from stint_runtime.errors import FunctionError, log
from stint_runtime.http1 import Answer, connect, read_answer, request_head

_ROOT = "/2018-06-01/runtime"
_ERROR_TYPE = "Lambda-Runtime-Function-Error-Type"
_ERROR_BODY = "Lambda-Runtime-Function-Error-Body"
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Invocation:
    """One event, and the headers of its delivery (names in lower case)."""

    request_id: str
    payload: bytes
    headers: Mapping[str, str]
    received_ms: int

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
        reader, writer = await connect(self._address)
        headers = {
            "Content-Type": "application/vnd.awslambda.http-integration-response",
            "Lambda-Runtime-Function-Response-Mode": "streaming",
            "Transfer-Encoding": "chunked",
            "Trailer": f"{_ERROR_TYPE}, {_ERROR_BODY}",
            "Connection": "close",
            **invocation.echo,
        }
        head = request_head("POST", f"{invocation.path}/response", self._address, headers)
        return ResponseStream(invocation.request_id, head, reader, writer)

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
    ) -> Answer:
        reader, writer = await connect(self._address)
        try:
            length = {"Content-Length": str(len(body))} if method == "POST" else {}
            head = request_head(method, path, self._address, {**(headers or {}), **length, "Connection": "close"})
            writer.write(head + body)
            return await read_answer(reader, arrived)
        finally:
            writer.close()


class ResponseStream:
    """A streamed response: chunks, and an end with or without an error.

    Lambda may respond or disconnect early if it has lost the invocation. Later writes are discarded.
    """

    def __init__(
        self, request_id: str, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._request_id = request_id
        self._head = head
        self._writer = writer
        self._answer = asyncio.create_task(read_answer(reader))
        # The abort ends a write that waits for a server that no longer reads.
        self._answer.add_done_callback(lambda _: writer.transport.abort())

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
            _log_refusal("/response", await self._answer, self._request_id)
        except OSError as error:
            log("WARNING", f"Lambda dropped the response: {error}", requestId=self._request_id)
        finally:
            self._writer.close()

    async def _send(self, data: bytes) -> None:
        data, self._head = self._head + data, b""
        if self._answer.done() or self._writer.is_closing() or not data:
            return
        self._writer.write(data)
        if not self._writer.transport.get_write_buffer_size():
            return  # all was sent at once, so there is nothing to wait for
        try:
            await self._writer.drain()
        except OSError:
            # `close` logs the state of the connection.
            return


def _chunk(data: memoryview) -> bytes:
    return b"".join((b"%x\r\n" % len(data), data, b"\r\n")) if data else b""


def _log_refusal(path: str, answer: Answer, request_id: str | None = None) -> None:
    if answer.status >= 300:
        body = answer.body[:500].decode("utf-8", "replace")
        log("WARNING", f"The Runtime API refused POST {path}: {answer.status} {body}", requestId=request_id)
