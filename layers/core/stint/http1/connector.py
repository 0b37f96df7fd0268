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
import socket
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

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

    async def _open(self) -> Connection:
        origin, proxy = self._origin, self._proxy
        if proxy is None:
            return await self._open_to(origin.host, origin.port, origin.tls)
        connection = await self._open_to(proxy.host, proxy.port, proxy.tls)
        if origin.tls:
            await self._open_tunnel(connection)
            await connection.start_tls(tls_context(self._ca_bundle), origin.host)
        return connection

    async def _open_to(self, host: str, port: int, tls: bool) -> Connection:
        connection = await self._connect_to_any(host, port)
        # TLS is begun on an open transport, whose buffer shows how much of a request was sent.
        if tls:
            await connection.start_tls(tls_context(self._ca_bundle), host)
        return connection

    async def _connect_to_any(self, host: str, port: int) -> Connection:
        """Connect to the first address of a host that answers.

        Each has an equal part of the time, and the last one what is left.
        """
        loop = asyncio.get_running_loop()
        addresses = [host] if is_address(host) else await find_addresses(host, port)
        *others, last = addresses
        for address in others:
            opening = loop.create_connection(lambda: Connection(self._clock), address, port)
            with suppress(OSError):
                return (await asyncio.wait_for(opening, self._timeout / len(addresses)))[1]
        return (await loop.create_connection(lambda: Connection(self._clock), last, port))[1]

    async def _open_tunnel(self, connection: Connection) -> None:
        """Ask a proxy for a connection to the server. It sees only the server's name and port."""
        host = f"[{self._origin.host}]" if ":" in self._origin.host else self._origin.host
        server = f"{host}:{self._origin.port}"
        request = f"CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n{self._authorization}\r\n"
        try:
            connection.start(request.encode("latin-1"), self._timeout, ResponseParser(tunnel=True, until_close=True))
            head = await connection.read_head()
            if not 200 <= head.status < 300:
                raise ConnectionRefusedError(f"The proxy refused the connection with status {head.status}.")
            await connection.read_response()
            if not connection.reusable:
                raise ConnectionRefusedError("The proxy sent more than its answer.")
        except BaseException:
            connection.abort()
            raise


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, which is not resolved."""
    return ":" in host or host.replace(".", "").isdigit()


async def find_addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, at least one, in the order in which to try them. Raises OSError.

    The system is asked in a thread of the loop's executor. uvloop's own method has two threads for all lookups, which a
    few slow names, also those of other callers, would keep for as long as they take.
    """
    found = await asyncio.to_thread(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@cache
def tls_context(ca_bundle: str) -> "SSLContext":
    """Return the context of connections that verify certificates against a bundle, or else against the system's.

    A process has one for each bundle: loading the system's certificates takes about as long as a whole handshake.
    """
    import ssl  # noqa: PLC0415 - a plain connection does not need it

    return ssl.create_default_context(cafile=ca_bundle or None)
