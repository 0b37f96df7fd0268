"""Connections to one server, directly or through a proxy, with or without TLS.

  server   proxy   connection
  http     none    to the server
  https    none    to the server, with TLS
  http     any     to the proxy, which forwards the request: it has the whole URL and the proxy's password
  https    any     to the proxy; after CONNECT, TLS with the server inside, so the proxy sees neither request nor key

Opening is a task of its own, because the watchdog must end it by cancelling it: the caller's own cancellation and the
timeout are then told apart by `watchdog.expired` and by `cancelling()` of the caller's task. A connection that was
opened at the moment of the cancellation belongs to nobody, and is closed here.
"""

import asyncio
import time
from collections.abc import Coroutine
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from stint.http1.connection import Clock, Connection, Watchdog
from stint.http1.parser import ResponseParser
from stint.http1.urls import Origin

if TYPE_CHECKING:
    from ssl import SSLContext

    from stint.http1.proxies import Proxy


class Connector:
    """Opens connections. The server's certificate is always verified, against `ca_bundle` if that is set."""

    def __init__(
        self,
        origin: Origin,
        proxy: "Proxy | None" = None,
        *,
        ca_bundle: str = "",
        timeout: float = 2.0,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._origin, self._proxy = origin, proxy
        self._ca_bundle, self._timeout, self._clock = ca_bundle, timeout, clock

    @property
    def target(self) -> str:
        """Return the request target of the path `/`."""
        return f"http://{self._origin.authority}/" if self._forwarded else "/"

    @property
    def headers(self) -> str:
        """Return the headers that a forwarding proxy requires, each with its line break."""
        return self._authorization if self._forwarded else ""

    async def connect(self) -> Connection:
        """Open a connection. Raises OSError or MalformedResponse."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._open())
        watchdog = Watchdog(self._clock, self._timeout, task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            if task.done() and not task.cancelled() and task.exception() is None:
                task.result().abort()  # the caller was cancelled after the connection was open
            caller = asyncio.current_task()
            # Both can happen at once. The cancellation wins, because its sender waits for it.
            if not watchdog.expired or (caller is not None and caller.cancelling()):
                raise
            raise TimeoutError("The connection was not established in time.") from None
        finally:
            watchdog.cancel()

    @property
    def _forwarded(self) -> bool:
        return self._proxy is not None and not self._origin.tls

    @property
    def _authorization(self) -> str:
        value = self._proxy.authorization if self._proxy is not None else ""
        return f"Proxy-Authorization: {value}\r\n" if value else ""

    def _open(self) -> Coroutine[Any, Any, Connection]:
        if self._proxy is None:
            return self._open_to(self._origin.host, self._origin.port, self._origin.tls)
        if self._origin.tls:
            return self._open_tunnel(self._proxy)
        return self._open_to(self._proxy.host, self._proxy.port, self._proxy.tls)

    async def _open_to(self, host: str, port: int, tls: bool) -> Connection:
        loop = asyncio.get_running_loop()
        context = tls_context(self._ca_bundle) if tls else None
        _, connection = await loop.create_connection(lambda: Connection(self._clock), host, port, ssl=context)
        return connection

    async def _open_tunnel(self, proxy: "Proxy") -> Connection:
        """Open a connection through a proxy, which sees only the server's name and port."""
        loop = asyncio.get_running_loop()
        connection = await self._open_to(proxy.host, proxy.port, proxy.tls)
        host = f"[{self._origin.host}]" if ":" in self._origin.host else self._origin.host
        server = f"{host}:{self._origin.port}"
        head = f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{self._authorization}\r\n"
        try:
            answer = await connection.send(head.encode("latin-1"), self._timeout, ResponseParser(tunnel=True))
            # A proxy that closes the connection after its answer cannot carry TLS on it.
            if not 200 <= answer.status < 300 or not connection.reusable or connection.transport is None:
                raise ConnectionRefusedError(f"The proxy refused the connection with status {answer.status}.")
            transport = await loop.start_tls(
                connection.transport, connection, tls_context(self._ca_bundle), server_hostname=self._origin.host
            )
            connection.transport = cast("asyncio.Transport", transport)
        except BaseException:
            connection.abort()
            raise
        return connection


@cache
def tls_context(ca_bundle: str) -> "SSLContext":
    """Return the context of connections that verify certificates against a bundle, or else against the system's.

    A process has one for each bundle: loading the system's certificates takes about as long as a whole handshake.
    """
    import ssl  # noqa: PLC0415 - a plain connection does not need it

    return ssl.create_default_context(cafile=ca_bundle or None)
