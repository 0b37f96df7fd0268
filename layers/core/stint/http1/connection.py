"""A kept-alive HTTP/1.1 connection over asyncio, and its timeouts.

A connection sends one request at a time, and is used again only after a complete response that leaves nothing open:

  state     is                               next
  idle      `_parser` is None                `start`, or bytes that no request asked for: closed
  busy      `_parser` is set                 a complete response: idle; an error, a timeout or `abort`: closed
  closed    `reusable` is false              -

A response that arrives after its caller has gone would otherwise answer the next request. So `send` closes the
connection whenever it ends without a response, also if it was cancelled; who calls `start` has to do the same.

A caller waits for one of three things (`Wanted`), and what arrives wakes it only when that is there. So a whole
response wakes its caller once. The reader of a stream takes the body piece by piece, and a connection whose reader is
slow stops receiving.

The timeout is of silence, not of the whole call: each received byte starts it again, and so does progress in sending a
large request. It does not run while nobody waits. Timers of an event loop can fire early, or all at once after a
process was frozen, as Lambda does between requests. `Watchdog` therefore asks a clock before it expires.
"""

import asyncio
import select
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, cast

from stint.http1.parser import HttpResponse, MalformedResponse, ResponseHead, ResponseParser

if TYPE_CHECKING:
    from ssl import SSLContext

Clock = Callable[[], float]

SMALL_REQUEST = 64 * 1024
"""Bytes that the system takes at once, even if the server reads nothing yet."""

UNREAD_LIMIT = 256 * 1024
"""Bytes of a streamed body that wait for their reader before the connection stops receiving."""


class Wanted(Enum):
    """A part of a response that a caller waits for."""

    HEAD = auto()
    BODY = auto()
    END = auto()


class Watchdog:
    """Calls a function after a time without progress.

    Timers of an event loop can fire early or all at once after a process was frozen, so `clock` decides.
    """

    def __init__(self, clock: Clock, seconds: float, expire: Callable[[], object]) -> None:
        self.expired = False
        self._clock, self._seconds, self._expire = clock, seconds, expire
        self._since = clock()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._check)

    def touch(self) -> None:
        """Note progress."""
        # Moving the timer at each byte would cost more than reading the time: it is moved when it fires.
        self._since = self._clock()

    def restart(self) -> None:
        """Wait again after it expired."""
        self.expired, self._since = False, self._clock()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._check)

    def cancel(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        left = self._since + self._seconds - self._clock()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._check)
        else:
            self.expired = True
            self._expire()


class Connection(asyncio.Protocol):
    """A connection that sends one request at a time."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.answered = False
        """Whether a byte of the response to the last request was received."""
        self.idle_since = 0.0
        self.reused = False
        """Whether the connection was idle before the request."""
        self.transport: asyncio.Transport | None = None
        self._layers: list[asyncio.Transport] = []
        """The transports of TCP and of each TLS on it. That of TLS hands its bytes on, so its buffer is empty."""
        self._clock = clock
        self._parser: ResponseParser | None = None
        self._wanted = Wanted.END
        self._waiter: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._error: OSError | MalformedResponse | None = None
        self._watchdog: Watchdog | None = None
        self._unsent = 0
        self._is_full = False
        self._is_paused = False
        self._reusable = True
        self._arrived: Callable[[], None] | None = None

    @property
    def reusable(self) -> bool:
        """Return whether the connection can send another request."""
        return (
            self._reusable and self._parser is None and self.transport is not None and not self.transport.is_closing()
        )

    async def send(self, request: bytes, timeout: float, parser: ResponseParser | None = None) -> HttpResponse:
        """Send a request, and return the response. `timeout` limits the silence of the server, in seconds.

        Raises OSError or MalformedResponse. The connection is then closed, as it is on cancellation.
        """
        self.start(request, timeout, parser or ResponseParser())
        return await self.read_response()

    def start(
        self,
        request: bytes,
        timeout: float | None,
        parser: ResponseParser,
        *,
        arrived: Callable[[], None] | None = None,
    ) -> None:
        """Send a request, or its beginning. `arrived` is called at the first byte of the response.

        Raises OSError if the connection is closed.
        """
        if self.transport is None or not self.reusable:
            raise ConnectionResetError("The server closed the connection.")
        self._parser, self._arrived, self.answered = parser, arrived, False
        if timeout is not None:
            self._watchdog = Watchdog(self._clock, timeout, self._time_out)
        self.transport.write(request)
        # Small requests are sent at once, or not at all.
        self._unsent = self._count_unsent() if len(request) > SMALL_REQUEST else 0

    async def write(self, data: bytes) -> None:
        """Send more of the request, and wait until the server receives it. Bytes after a response are discarded."""
        if self._parser is None or self._parser.ended or self.transport is None or self.transport.is_closing():
            return
        self.transport.write(data)
        if self._is_full:
            if self._drained is None or self._drained.done():
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)  # other writers may wait for it

    async def read_response(self) -> HttpResponse:
        """Return the whole response. Raises OSError or MalformedResponse."""
        head, parser = await self._wait(Wanted.END)
        response = HttpResponse(head.status, head.headers, parser.take_body())
        self._finish(parser)
        return response

    async def read_head(self) -> ResponseHead:
        """Return the head of the response. Raises OSError or MalformedResponse."""
        return (await self._wait(Wanted.HEAD))[0]

    async def read_body(self) -> bytes:
        """Return the next bytes of the body; none after the last ones. Raises OSError or MalformedResponse."""
        if self._parser is None:
            return b""
        _, parser = await self._wait(Wanted.BODY)
        body = parser.take_body()
        if parser.ended:
            self._finish(parser)
        else:
            self._resume_reading()
        return body

    def abort(self) -> None:
        """Close the connection at once."""
        self._reusable = False
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self.transport is not None:
            self.transport.abort()

    async def start_tls(self, context: "SSLContext", host: str) -> None:
        """Begin TLS on the open connection, which may be one already. Raises OSError. The connection is then closed."""
        loop = asyncio.get_running_loop()
        try:
            if self.transport is None or not self.reusable:
                raise ConnectionResetError("The server closed the connection.")
            made = await loop.start_tls(self.transport, self, context, server_hostname=host)
        except BaseException:
            self.abort()
            raise
        self.connection_made(cast("asyncio.Transport", made))

    def has_input(self) -> bool:
        """Return whether bytes, or the end of the connection, have arrived that the event loop has not yet read."""
        socket = self.transport.get_extra_info("socket") if self.transport is not None else None
        if socket is None:
            return False
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._layers.append(self.transport)

    def data_received(self, data: bytes) -> None:
        if self._parser is None or self.transport is None:
            self.abort()  # bytes that no request asked for
            return
        if not self.answered:
            self.answered = True
            if self._arrived is not None:
                self._arrived()
        if self._watchdog is not None:
            self._watchdog.touch()
        try:
            self._parser.feed(data)
        except MalformedResponse as error:
            self._fail(error)
            self.abort()
            return
        if self._wanted is not Wanted.END and len(self._parser.body) > UNREAD_LIMIT and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake(self._parser)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._release_writer()

    def eof_received(self) -> None:
        """End the request at the end of what the server sends. The connection is closed, even if bytes are unsent."""
        self._lose(None)
        self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        """End the request with its connection, which is the end of some bodies."""
        if self._parser is not None and error is None and self._reusable:  # the server has ended it, not `abort`
            self._parser.feed_eof()
            self._wake(self._parser)
        self._reusable = False
        lost = ConnectionResetError("The server closed the connection before the end of its response.")
        lost.__cause__ = error
        self._fail(lost)
        self._release_writer()

    async def _wait(self, wanted: Wanted) -> tuple[ResponseHead, ResponseParser]:
        """Wait for a part of the response. Closes the connection if it does not come, or nobody waits any more."""
        parser, self._wanted = self._parser, wanted
        if parser is None:
            raise ConnectionResetError("The connection has no request.")
        try:
            if not parser.ended and not self._has(wanted, parser):
                if self._error is not None:
                    raise self._error
                self._waiter = asyncio.get_running_loop().create_future()
                if self._watchdog is not None and self.answered:
                    self._watchdog.touch()
                await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
        assert parser.head is not None  # noqa: S101 - each part follows the head
        return parser.head, parser

    def _has(self, wanted: Wanted, parser: ResponseParser) -> bool:
        if parser.ended:
            return True
        return parser.head is not None if wanted is Wanted.HEAD else wanted is Wanted.BODY and bool(parser.body)

    def _wake(self, parser: ResponseParser) -> None:
        if parser.ended and self._drained is not None:
            self._release_writer()
        if self._waiter is not None and not self._waiter.done() and self._has(self._wanted, parser):
            self._waiter.set_result(None)

    def _finish(self, parser: ResponseParser) -> None:
        """Make the connection idle after a complete response."""
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._watchdog = self._parser = self._arrived = None
        # A server can answer before it has read the request; what is left of that would precede the next request.
        self._reusable = self._reusable and parser.keep_alive and not self._count_unsent()
        if self._reusable and self._is_paused:
            self._resume_reading()

    def _count_unsent(self) -> int:
        unsent = 0
        for layer in self._layers:
            unsent += layer.get_write_buffer_size()
        return unsent

    def _resume_reading(self) -> None:
        if self._is_paused and self.transport is not None:
            self._is_paused = False
            self.transport.resume_reading()

    def _release_writer(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _time_out(self) -> None:
        """Fail the request, unless a part of it was sent meanwhile, or nobody waits."""
        if self._watchdog is None:
            return
        # A large request over a slow line is progress without any byte of a response.
        unsent = self._count_unsent()
        if self._waiter is None or 0 < unsent < self._unsent:
            self._unsent = unsent
            self._watchdog.restart()
        else:
            self._fail(TimeoutError("The server did not respond in time."))

    def _fail(self, error: OSError | MalformedResponse) -> None:
        """Fail the request. What has arrived of its response can still be read."""
        self._error = self._error or error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(self._error)
