"""Requests to URLs, whose responses are read as they arrive.

A client has the connections of each server that it was asked for, by its origin. A request takes one of them, and
returns it when the caller leaves `stream`: it is kept if the body was read to its end, and else closed, because the
rest of the body would be read as the answer to the next request. For the same reason, a response cannot be read
afterwards.

Nothing is repeated here. A `TransportError` says whether the request may have reached the server, and whether it met a
connection that the server had closed while it was idle (`stale`). The other idle connections are then closed, too, so
that the caller's next attempt is made on a new one.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache

from stint.dataclasses import dataclass
from stint.http1.connection import Clock, Connection
from stint.http1.connector import Connector
from stint.http1.parser import BODY_LIMIT, MalformedResponse, ResponseHead, ResponseParser
from stint.http1.pool import ConnectionPools, LoopPool, PoolOptions, TransportError
from stint.http1.proxies import Proxies
from stint.http1.urls import Origin, RequestURL, parse_url

split_url = lru_cache(maxsize=256)(parse_url)
IDLE_SECONDS = 55.0
"""Load balancers and proxies close idle connections after 60 seconds, mostly."""


@dataclass(frozen=True, slots=True)
class HttpTimeouts:
    """Seconds until a connection must be open, and of the longest silence of the server."""

    connect: float = 5.0
    silence: float = 60.0


class HttpStream:
    """A response whose body is read piece by piece. Its methods raise TransportError."""

    def __init__(self, connection: Connection, head: ResponseHead) -> None:
        self.status, self.headers = head.status, head.headers
        self._connection = connection
        self._is_closed = False

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        while piece := await self._read():
            yield piece

    async def read(self, max_bytes: int = BODY_LIMIT) -> bytes:
        """Return the rest of the body. Raises TransportError, also if it has more bytes."""
        body = bytearray()
        while piece := await self._read():
            body += piece
            if len(body) > max_bytes:
                error = MalformedResponse(f"The body of the response has more than {max_bytes} bytes.")
                raise TransportError.of(error, self._connection) from error
        return bytes(body)

    def close(self) -> None:
        """Refuse further reads, since the connection may have another request."""
        self._is_closed = True

    async def _read(self) -> bytes:
        if self._is_closed:
            raise RuntimeError("The response was closed.")
        try:
            return await self._connection.read_body()
        except (OSError, MalformedResponse) as error:
            raise TransportError.of(error, self._connection) from error


class HttpClient:
    """Client for any number of servers and event loops. It limits neither calls nor connections at once."""

    def __init__(
        self, proxies: Proxies, timeouts: HttpTimeouts, *, ca_bundle: str = "", clock: Clock = lambda: time.monotonic()
    ) -> None:
        self._proxies, self._timeouts, self._ca_bundle, self._clock = proxies, timeouts, ca_bundle, clock
        self._servers: dict[Origin, tuple[Connector, ConnectionPools]] = {}

    @asynccontextmanager
    async def stream(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[HttpStream]:
        """Send a request, and yield the response once its head has arrived.

        The connection is kept if the body was read to its end. A user and password in the URL replace the authorization
        of the headers. Raises TransportError, InvalidURL, InvalidProxy, and ValueError for an invalid header.
        """
        parts = split_url(url)
        connector, pools = self._servers.get(parts.origin) or self._add(parts.origin)
        request = encode_head(method, parts, connector, headers, len(body)) + body
        pool: LoopPool = await pools.pool()
        connection = await pool.acquire()
        stream: HttpStream | None = None
        try:
            yield (stream := await self._start(connection, request))
        except TransportError as error:
            if error.stale:  # a retry then has a new connection
                pool.drop_idle()
            raise
        finally:
            if stream is not None:
                stream.close()
            pool.release(connection)

    async def connect(self, url: str) -> None:
        """Have an idle connection to the server of a URL. Raises TransportError, InvalidURL and InvalidProxy."""
        origin = split_url(url).origin
        _, pools = self._servers.get(origin) or self._add(origin)
        await pools.open_ahead()

    async def close(self) -> None:
        """Close the idle connections of the running event loop."""
        for _, pools in list(self._servers.values()):
            await pools.close()

    async def _start(self, connection: Connection, request: bytes) -> HttpStream:
        try:
            connection.start(request, self._timeouts.silence, ResponseParser(until_close=True, max_body=None))
            return HttpStream(connection, await connection.read_head())
        except (OSError, MalformedResponse) as error:
            raise TransportError.of(error, connection) from error

    def connect_to(self, origin: Origin) -> Connector:
        """Return what opens the connections to a server. Raises InvalidProxy."""
        proxy = self._proxies.choose(origin.scheme, origin.host, origin.port)
        timeout, clock = self._timeouts.connect, self._clock
        return Connector(origin, proxy, ca_bundle=self._ca_bundle, timeout=timeout, clock=clock)

    def _add(self, origin: Origin) -> tuple[Connector, ConnectionPools]:
        connector = self.connect_to(origin)
        options = PoolOptions(size=None, idle_seconds=IDLE_SECONDS, clock=self._clock)
        return self._servers.setdefault(origin, (connector, ConnectionPools(connector.connect, options)))


def encode_head(method: str, parts: RequestURL, connector: Connector, headers: Mapping[str, str], length: int) -> bytes:
    """Return the head of a request. Raises ValueError for a header that would be more than one line."""
    if parts.authorization:
        others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        headers = {**others, "Authorization": parts.authorization}
    lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
    fields = "".join(lines)
    # A line break in a value would begin another header, or another request.
    if fields.count("\n") != len(lines) or fields.count("\r") != len(lines) or "\0" in fields:
        raise ValueError("A header of the request has a line break.")
    start = f"{method} {connector.target[:-1]}{parts.target} HTTP/1.1\r\nhost: {parts.origin.authority}\r\n"
    return f"{start}{connector.headers}{fields}content-length: {length}\r\n\r\n".encode("latin-1")
