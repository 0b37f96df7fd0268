"""Kept-alive connections to one server, a pool for each event loop.

A transport belongs to the event loop that opened it, and a client is used by several loops (threads with
`asyncio.run`). So each loop has its own connections. A pool must end with its loop, which has no hook for that, except
one: a loop closes the asynchronous generators that were started in it. `_until_the_end_of` is such a generator. A loop
that is closed without that is forgotten when the next pool is added.

The idle connection that was used last is taken first, so that the others reach their idle time and are closed. A server
closes idle connections, too, and its notice may arrive after the next request was sent. Such a failure is `stale`: a
reused connection that was closed without a byte of an answer. It says nothing about the service, so the next attempt
follows at once, on a new connection, and all other idle ones of the pool are dropped. A timeout is never stale.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from stint.dataclasses import dataclass
from stint.http1.connection import Clock, Connection, Watchdog
from stint.http1.parser import BODY_LIMIT, HttpResponse, MalformedResponse, ResponseParser

CONNECTIONS = 64
"""Maximum connections of an event loop to a service of AWS. Further calls wait."""

BLOCKED_SECONDS = 0.1
"""Idle time after which a connection is asked for input. Servers end connections only after seconds."""


@dataclass(frozen=True)
class PoolOptions:
    """Limits of a pool."""

    size: int | None = CONNECTIONS
    """Maximum connections of an event loop, or None if the callers limit the calls at once."""
    idle_seconds: float = 30.0
    """Longest time that an idle connection is kept."""
    clock: Clock = time.perf_counter


class TransportError(Exception):
    """A request has no complete response.

    `sent`: it may have reached the server. `stale`: its connection was a reused one, closed without an answer.
    """

    def __init__(self, message: str, *, sent: bool, stale: bool = False) -> None:
        super().__init__(message)
        self.sent = sent
        self.stale = stale

    @classmethod
    def of(cls, error: OSError | MalformedResponse, connection: Connection) -> "TransportError":
        """Return the error of a request that was sent on a connection."""
        # Bytes of an answer, or silence, mean that the server took the request.
        stale = connection.reused and not connection.answered and not isinstance(error, TimeoutError)
        return cls(str(error), sent=True, stale=stale)

    @property
    def timed_out(self) -> bool:
        return isinstance(self.__cause__, TimeoutError)


class LoopPool:
    """The connections of one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], options: PoolOptions) -> None:
        self._connect, self._options, self._clock = connect, options, options.clock
        self._slots = asyncio.Semaphore(options.size) if options.size is not None else None
        self._idle: list[Connection] = []
        self._sweep: Watchdog | None = None
        self._closed = False

    async def acquire(self, *, fresh: bool = False) -> Connection:
        """Return an idle connection or a new one, for `release` after its request. Raises TransportError."""
        if self._slots is not None:
            await self._slots.acquire()
        try:
            return (None if fresh else self._take()) or await self._open()
        except BaseException:
            self._release_slot()
            raise

    def release(self, connection: Connection) -> None:
        """Keep a connection if it can be used again, or else close it."""
        self._release_slot()
        # The pool can be closed during the request.
        if self._closed or not connection.reusable:
            connection.abort()
            return
        connection.idle_since = self._clock()
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep = Watchdog(self._clock, self._options.idle_seconds, self._close_old)

    def close(self) -> None:
        """Close the idle connections, and those in use after their request."""
        self._closed = True
        self.drop_idle()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    def drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().abort()

    async def _open(self) -> Connection:
        try:
            return await self._connect()
        except (OSError, ValueError) as error:  # ValueError: the host is no name
            raise TransportError(f"The server cannot be reached: {error}", sent=False) from error
        except MalformedResponse as error:
            raise TransportError(f"The proxy cannot be used: {error}", sent=False) from error

    def _take(self) -> Connection | None:
        """Return the connection that was used last, unless it was closed or idle for too long."""
        # The sweep may be late: a process that was frozen has connections that the server closed long ago.
        oldest = self._clock() - self._options.idle_seconds
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and connection.idle_since > oldest and not self._has_old_input(connection):
                connection.reused = True
                return connection
            connection.abort()
        return None

    def _has_old_input(self, connection: Connection) -> bool:
        """Return whether bytes may have arrived unasked, which would be read as the answer to the next request.

        The loop has read them, unless it was blocked or frozen meanwhile.
        """
        return self._clock() - connection.idle_since > BLOCKED_SECONDS and connection.has_input()

    def _release_slot(self) -> None:
        if self._slots is not None:
            self._slots.release()

    def _close_old(self) -> None:
        """Close the connections that were idle for too long."""
        oldest = self._clock() - self._options.idle_seconds
        for connection in self._idle:
            if connection.idle_since <= oldest:
                connection.abort()
        self._idle = [connection for connection in self._idle if connection.reusable]
        if self._idle and self._sweep is not None:
            self._sweep.restart()
        else:
            self._sweep = None


class ConnectionPools:
    """The pools of all event loops. A pool ends with its loop."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], options: PoolOptions) -> None:
        self._connect, self._options = connect, options
        self._pools: dict[asyncio.AbstractEventLoop, tuple[LoopPool, AsyncGenerator[None, None]]] = {}

    async def send(
        self,
        request: bytes,
        timeout: float,
        *,
        after: TransportError | None = None,
        max_body: int | None = BODY_LIMIT,
    ) -> HttpResponse:
        """Send a request in the pool of the running loop, and return the response. Raises TransportError.

        `after` is the error of the last attempt. A new connection is used after it, since idle ones may fail, too.
        """
        pool = await self.pool()
        if after is not None and after.stale:
            pool.drop_idle()
        connection = await pool.acquire(fresh=after is not None)
        try:
            return await connection.send(request, timeout, ResponseParser(max_body=max_body))
        except (OSError, MalformedResponse) as error:
            raise TransportError.of(error, connection) from error
        finally:
            pool.release(connection)

    async def pool(self) -> LoopPool:
        """Return the pool of the running loop."""
        loop = asyncio.get_running_loop()
        entry = self._pools.get(loop) or await self._add(loop)
        return entry[0]

    async def open_ahead(self, count: int = 1) -> None:
        """Have idle connections in the pool of the running loop. Raises TransportError."""
        pool = await self.pool()

        async def open_one() -> None:
            pool.release(await pool.acquire())

        # None is idle before all are begun, so each opens one.
        await asyncio.gather(*(open_one() for _ in range(count)))

    async def close(self) -> None:
        """Close the idle connections of the running loop."""
        entry = self._pools.pop(asyncio.get_running_loop(), None)
        if entry is not None:
            await entry[1].aclose()

    async def _add(self, loop: asyncio.AbstractEventLoop) -> tuple[LoopPool, AsyncGenerator[None, None]]:
        for other in [each for each in list(self._pools) if each.is_closed()]:
            self._pools.pop(other, None)
        pool = LoopPool(self._connect, self._options)
        ending = self._until_the_end_of(loop, pool)
        entry = self._pools.setdefault(loop, (pool, ending))
        if entry[0] is pool:
            await anext(ending)
        return entry

    async def _until_the_end_of(self, loop: asyncio.AbstractEventLoop, pool: LoopPool) -> AsyncGenerator[None, None]:
        """Close a pool at the end of its loop, which closes the asynchronous generators that it has started."""
        try:
            yield
        finally:
            self._pools.pop(loop, None)
            pool.close()
