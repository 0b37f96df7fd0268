"""An HTTP transport that connects only to checked addresses."""

import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpcore
import httpx

from stint.domain.errors import InvalidRequest
from stint.net.addresses import Address
from stint.net.body import bound
from stint.net.urls import check_form, check_redirect

Find = Callable[[str, int], Awaitable[list[Address]]]
SocketOptions = Iterable[Any] | None


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects only to the addresses that `find` returns for a host, in their order.

    `find` resolves and checks in one step. No name is resolved after it, so DNS rebinding has no effect. TLS starts
    later and still verifies the name.
    """

    def __init__(self, find: Find, backend: httpcore.AsyncNetworkBackend) -> None:
        self._find = find
        self._backend = backend

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: SocketOptions = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._find(host, port):
            # The address, not the name: the system would resolve the name again.
            try:
                return await self._backend.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)


class CheckedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport over `CheckedBackend`. It checks the URL of each request, including redirects."""

    def __init__(self, find: Find, tls: ssl.SSLContext, max_bytes: int) -> None:
        super().__init__(verify=tls, trust_env=False)
        # httpx has no parameter for the backend. The pool is still empty and need not be closed.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls, network_backend=CheckedBackend(find, httpcore.AnyIOBackend())
        )
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # Redirects come here, too, since httpx follows them above the transport.
        check_form(request.url)
        response = await super().handle_async_request(request)
        response.request = request
        try:
            return self._bound(response)
        except InvalidRequest:
            await response.aclose()
            raise

    def _bound(self, response: httpx.Response) -> httpx.Response:
        """Check a response's headers, and limit its body. Raises InvalidRequest."""
        check_redirect(response)
        bound(response, response.request.url.host, self._max_bytes)
        return response
