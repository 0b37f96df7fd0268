"""A kept-alive HTTP/1.1 connection over asyncio, and its timeouts.

A connection sends one request at a time, and is used again only after a complete response that leaves nothing open:

  state     is                               next
  idle      `_waiter` is None                `send`, or bytes that no request asked for: closed
  waiting   `_waiter` is a future            a complete response: idle; an error, a timeout or a cancellation: closed
  closed    `reusable` is false              -

A response that arrives after its caller has gone would otherwise answer the next request. So `send` closes the
connection whenever it ends without a response, also if it was cancelled.

The timeout is of silence, not of the whole call: each received byte starts it again, and so does progress in sending a
large request. Timers of an event loop can fire early, or all at once after a process was frozen, as Lambda does between
requests. `Watchdog` therefore asks a clock before it expires.
"""

import asyncio
import time
from collections.abc import Callable
from typing import cast

from stint.aws.http1 import HttpResponse, MalformedResponse, ResponseParser

Clock = Callable[[], float]


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
        self.transport: asyncio.Transport | None = None
        self._clock = clock
        self._parser = ResponseParser()
        self._waiter: asyncio.Future[HttpResponse] | None = None
        self._watchdog: Watchdog | None = None
        self._unsent = 0
        self._reusable = True

    @property
    def reusable(self) -> bool:
        """Return whether the connection can send another request."""
        return self._reusable and self.transport is not None and not self.transport.is_closing()

    async def send(self, request: bytes, timeout: float, *, tunnel: bool = False) -> HttpResponse:
        """Send a request, and return the response. `timeout` limits the silence of the server.

        Raises OSError or MalformedResponse. The connection is then closed, as it is on cancellation.
        """
        if self.transport is None or not self.reusable:
            raise ConnectionResetError("The server closed the connection.")
        self._parser, self.answered, self._unsent = ResponseParser(tunnel=tunnel), False, len(request)
        self._waiter = asyncio.get_running_loop().create_future()
        self._watchdog = Watchdog(self._clock, timeout, self._time_out)
        try:
            self.transport.write(request)
            response = await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._watchdog.cancel()
            self._waiter = None
        # A server can answer before it has read the request; what is left of that would precede the next request.
        self._reusable = response.keep_alive and not self.transport.get_write_buffer_size()
        return response

    def abort(self) -> None:
        """Close the connection at once."""
        self._reusable = False
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None or self._waiter.done():
            self.abort()  # bytes that no request asked for
            return
        self.answered = True
        if self._watchdog is not None:
            self._watchdog.touch()
        try:
            response = self._parser.feed(data)
        except MalformedResponse as error:
            # `send` closes the connection when it raises this.
            self._waiter.set_exception(error)
            return
        if response is not None:
            self._waiter.set_result(response)

    def connection_lost(self, error: Exception | None) -> None:
        self._reusable = False
        lost = ConnectionResetError("The server closed the connection before the end of its response.")
        lost.__cause__ = error
        self._fail(lost)

    def _time_out(self) -> None:
        """Fail the request, unless a part of it was sent meanwhile."""
        # A large request over a slow line is progress without any byte of a response.
        unsent = self.transport.get_write_buffer_size() if self.transport is not None else 0
        if self._watchdog is not None and 0 < unsent < self._unsent:
            self._unsent = unsent
            self._watchdog.restart()
        else:
            self._fail(TimeoutError("The server did not respond in time."))

    def _fail(self, error: OSError) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
