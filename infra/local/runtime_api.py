"""Lambda's Runtime API for one function process.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html. State errors and their messages are those of AWS's
runtime interface emulator (aws-lambda-runtime-interface-emulator, internal/lambda/rapi).
"""

import asyncio
import contextlib
import json
from base64 import b64decode
from collections import deque
from typing import Any

import h11
from infra.local.delivery import Delivery
from infra.local.http_peer import HttpPeer
from infra.local.invocation import FunctionError, Invocation, response_too_large
from infra.local.server import listen_apart
from infra.local.web_pages import decoded, reason_to_refuse

Head = dict[str, str]

BUFFERED_LIMIT = 6 * 1024 * 1024 + 100
STREAMED_LIMIT = 200 * 1024 * 1024

_ROOT = "/2018-06-01/runtime"
_ERROR_TYPE = "lambda-runtime-function-error-type"
_ERROR_BODY = "lambda-runtime-function-error-body"
_MODE = "lambda-runtime-function-response-mode"


class RuntimeApi:
    """Server for one process, which may have `at_once` events at a time.

    `ready` is set while the process waits for an event, and `init_error` is its initialization error. `leaving` is true
    once the process has withdrawn a request for an event. A connection that is closed with unread bytes is reset
    (RFC 2525, 2.17), any other one ends.
    """

    def __init__(self, *, streamed_limit: int = STREAMED_LIMIT, at_once: int = 1) -> None:
        self.ready = asyncio.Event()
        self.init_error: FunctionError | None = None
        self.leaving = False
        self._streamed_limit = streamed_limit
        self.at_once = at_once
        self._polls: deque[asyncio.Future[Delivery]] = deque()
        self._deliveries: dict[str, Delivery] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen on a port that is refused in URLs of callers, and return `host:port`."""
        self._server = await asyncio.start_server(self._accept, sock=listen_apart())
        host, port = self._server.sockets[0].getsockname()
        return f"{host}:{port}"

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def wait_until_left(self, seconds: float) -> None:
        """Wait until the connections of a dead process have ended."""
        if self._connections:
            await asyncio.wait(self._connections, timeout=seconds)

    @property
    def running(self) -> int:
        """Return the number of events that have no response yet."""
        return sum(not delivery.answered for delivery in self._deliveries.values())

    @property
    def polls(self) -> int:
        """Return the number of requests for events that wait."""
        return len(self._polls)

    def dispatch(self, invocation: Invocation, *, timeout: float, arn: str) -> Delivery:
        """Send an event to the process, which must be ready."""
        if not self._polls:
            raise RuntimeError("The process is not waiting for work.")
        delivery = Delivery.of(invocation, timeout, arn)
        # Answered ones are kept until the next event, so that a second answer is refused as one, not as unknown.
        self._deliveries = {name: each for name, each in self._deliveries.items() if not each.answered}
        self._deliveries[invocation.request_id] = delivery
        self._polls.popleft().set_result(delivery)
        self._update_ready()
        return delivery

    def _update_ready(self) -> None:
        if self._polls:
            self.ready.set()
        else:
            self.ready.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = HttpPeer(reader, writer)
        try:
            with contextlib.suppress(ConnectionError, h11.RemoteProtocolError):
                while request := await peer.request():
                    await self._route(peer, request)
        finally:
            writer.close()

    async def _route(self, peer: HttpPeer, request: h11.Request) -> None:
        method, path = request.method.decode(), request.target.decode().removeprefix(_ROOT)
        headers = dict(decoded(request.headers))
        if (reason := reason_to_refuse(list(headers.items()))) is not None:
            await _refuse(peer, 403, "Forbidden", reason)
            return
        match [method, *path.strip("/").split("/")]:
            case ["GET", "invocation", "next"]:
                await self._next(peer)
            case ["POST", "invocation", request_id, "response"]:
                await self._response(peer, request_id, headers)
            case ["POST", "invocation", request_id, "error"]:
                await self._error(peer, request_id, headers)
            case ["POST", "init", "error"]:
                self.init_error = FunctionError.reported(headers.get(_ERROR_TYPE), await peer.body(BUFFERED_LIMIT))
                await peer.answer(202, _STATUS_OK)
            case ["GET", "restore", "next"]:
                await peer.answer(200, b"")
            case _:
                await _refuse(peer, 404, "NotFound", f"No such resource: {method} {path}")

    async def _next(self, peer: HttpPeer) -> None:
        # More requests than the events that it may have are a fault of the runtime, which Lambda refuses, too.
        if self.running + len(self._polls) >= self.at_once:
            await _refuse_transition(peer, "ready" if self._polls else "running", "ready")
            return
        poll: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        self._polls.append(poll)
        self._update_ready()
        # The process sends nothing while it waits, so any byte, and the end of the connection, means that it has left.
        gone = asyncio.create_task(peer.next_bytes())
        either: set[asyncio.Future[Any]] = {poll, gone}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if poll.done():
                await self._deliver(peer, poll.result(), gone)
            else:
                self.leaving = True
                await gone
        finally:
            gone.cancel()
            if poll in self._polls:
                self._polls.remove(poll)
                self._update_ready()

    async def _deliver(self, peer: HttpPeer, delivery: Delivery, gone: asyncio.Task[None]) -> None:
        """Send an event, and observe until the next bytes whether the process read it."""
        if peer.is_closed:
            self._take_back(delivery)
            return
        try:
            await peer.answer(200, delivery.invocation.event, delivery.headers)
            await gone
            peer.check()
        except ConnectionError:
            # If a response has begun, the process has read the event, whatever became of this connection.
            if not delivery.invocation.begun.is_set():
                self._take_back(delivery)
            raise

    def _take_back(self, delivery: Delivery) -> None:
        """Record that the process has not read an event, and expect no response to it."""
        self.leaving = True
        self._deliveries.pop(delivery.invocation.request_id, None)
        delivery.returned.set()

    async def _expect(self, peer: HttpPeer, request_id: str) -> Delivery | None:
        """Return the delivery if the request answers it; otherwise refuse the request."""
        delivery = self._deliveries.get(request_id)
        if delivery is None:
            await _refuse(peer, 400, "InvalidRequestID", "Invalid request ID")
        elif delivery.answered:
            await _refuse_transition(peer, "answered", "answered")
        else:
            return delivery
        return None

    async def _error(self, peer: HttpPeer, request_id: str, headers: Head) -> None:
        delivery = await self._expect(peer, request_id)
        if delivery is None:
            return
        delivery.answered = True
        delivery.invocation.finish(FunctionError.reported(headers.get(_ERROR_TYPE), await peer.body(BUFFERED_LIMIT)))
        await peer.answer(202, _STATUS_OK)

    async def _response(self, peer: HttpPeer, request_id: str, headers: Head) -> None:
        delivery = await self._expect(peer, request_id)
        if delivery is None:
            return
        delivery.answered = True
        invocation = delivery.invocation
        mode = headers.get(_MODE)
        if mode not in (None, "streaming"):
            message = f"Invalid function response mode: {mode}"
            invocation.finish(FunctionError.of("Runtime.InvalidResponseModeHeader", message))
            await _refuse(peer, 400, "InvalidFunctionResponseMode", message)
            return
        streaming = mode == "streaming"
        content_type = headers.get("content-type", "application/json")
        try:
            await (self._stream if streaming else self._buffer)(peer, invocation, content_type)
        except (ConnectionError, h11.RemoteProtocolError) as error:
            invocation.finish(FunctionError.of("Runtime.TruncatedResponse", f"The response was interrupted: {error}"))
            raise

    async def _buffer(self, peer: HttpPeer, invocation: Invocation, content_type: str) -> None:
        body = await peer.body(BUFFERED_LIMIT)
        if len(body) > BUFFERED_LIMIT:
            await _refuse_size(peer, invocation, BUFFERED_LIMIT)
            return
        invocation.begin(content_type)
        invocation.feed(body)
        invocation.finish()
        await peer.answer(202, _STATUS_OK)

    async def _stream(self, peer: HttpPeer, invocation: Invocation, content_type: str) -> None:
        invocation.begin(content_type)
        left = self._streamed_limit
        while isinstance(event := await peer.event(), h11.Data):
            invocation.feed(bytes(event.data[:left]))
            left -= len(event.data)
            if left < 0:
                await _refuse_size(peer, invocation, self._streamed_limit)
                return
        invocation.finish(_trailers_error(event) if isinstance(event, h11.EndOfMessage) else None)
        await peer.answer(202, _STATUS_OK)


_STATUS_OK = b'{"status":"OK"}\n'


def _trailers_error(end: h11.EndOfMessage) -> FunctionError | None:
    trailers = {name.decode(): value.decode("latin-1") for name, value in end.headers}
    if _ERROR_TYPE not in trailers:
        return None
    return FunctionError.reported(trailers[_ERROR_TYPE], b64decode(trailers.get(_ERROR_BODY, "")))


async def _refuse_size(peer: HttpPeer, invocation: Invocation, limit: int) -> None:
    error = response_too_large(limit)
    invocation.finish(error)
    await _refuse(peer, 413, "RequestEntityTooLarge", error.message)


async def _refuse_transition(peer: HttpPeer, state: str, target: str) -> None:
    message = f"State transition from {state} to {target} failed for runtime. Error: State transition is not allowed"
    await _refuse(peer, 403, "InvalidStateTransition", message)


async def _refuse(peer: HttpPeer, status: int, error_type: str, message: str) -> None:
    await peer.answer(status, json.dumps({"errorMessage": message, "errorType": error_type}).encode())
