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
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from stint.aws.connection import Clock, Connection, Watchdog
from stint.aws.endpoints import Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext

    from stint.aws.proxies import Proxy


class Connector:
    """Opens connections. The server's certificate is always verified, against `ca_bundle` if that is set."""

    def __init__(
        self,
        endpoint: Endpoint,
        proxy: "Proxy | None" = None,
        *,
        ca_bundle: str = "",
        timeout: float = 2.0,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._endpoint, self._proxy = endpoint, proxy
        self._ca_bundle, self._timeout, self._clock = ca_bundle, timeout, clock

    @property
    def target(self) -> str:
        """Return the request target of the path `/`."""
        return f"http://{self._endpoint.authority}/" if self._forwarded else "/"

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
        return self._proxy is not None and not self._endpoint.tls

    @property
    def _authorization(self) -> str:
        value = self._proxy.authorization if self._proxy is not None else ""
        return f"Proxy-Authorization: {value}\r\n" if value else ""

    @cached_property
    def _tls(self) -> "SSLContext":
        import ssl  # noqa: PLC0415 - a plain connection does not need it

        return ssl.create_default_context(cafile=self._ca_bundle or None)

    def _open(self) -> Coroutine[Any, Any, Connection]:
        if self._proxy is None:
            return self._open_to(self._endpoint.host, self._endpoint.port, self._endpoint.tls)
        if self._endpoint.tls:
            return self._open_tunnel(self._proxy)
        return self._open_to(self._proxy.host, self._proxy.port, self._proxy.tls)

    async def _open_to(self, host: str, port: int, tls: bool) -> Connection:
        loop = asyncio.get_running_loop()
        context = self._tls if tls else None
        _, connection = await loop.create_connection(lambda: Connection(self._clock), host, port, ssl=context)
        return connection

    async def _open_tunnel(self, proxy: "Proxy") -> Connection:
        """Open a connection through a proxy, which sees only the server's name and port."""
        loop = asyncio.get_running_loop()
        connection = await self._open_to(proxy.host, proxy.port, proxy.tls)
        host = f"[{self._endpoint.host}]" if ":" in self._endpoint.host else self._endpoint.host
        server = f"{host}:{self._endpoint.port}"
        head = f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{self._authorization}\r\n"
        try:
            answer = await connection.send(head.encode("latin-1"), self._timeout, tunnel=True)
            # A proxy that closes the connection after its answer cannot carry TLS on it.
            if not 200 <= answer.status < 300 or not connection.reusable or connection.transport is None:
                raise ConnectionRefusedError(f"The proxy refused the connection with status {answer.status}.")
            transport = await loop.start_tls(
                connection.transport, connection, self._tls, server_hostname=self._endpoint.host
            )
            connection.transport = cast("asyncio.Transport", transport)
        except BaseException:
            connection.abort()
            raise
        return connection
