"""An HTTP transport that connects only to checked addresses.

Bodies of responses from servers that callers choose are decompressed, counted and decoded within limits.
"""

import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import httpcore
import httpx

from stint.domain.errors import InvalidRequest
from stint.net.addresses import Address
from stint.net.encodings import find_codec
from stint.net.large_answers import LARGE, acquire_for_large_answer
from stint.net.urls import check_form, check_redirect

Find = Callable[[str, int], Awaitable[list[Address]]]
SocketOptions = Iterable[Any] | None

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""Supported content codings (RFC 9110, section 8.4.1). Several codings at once are refused, against zip bombs."""

MOST_CHUNKS = 40_000
"""Maximum chunks of one body, whatever their size: each takes 40 microseconds of CPU time."""

_PIECE = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


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
                return await self._backend.connect_tcp(
                    str(address), port, timeout, local_address, socket_options=socket_options
                )
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


def bound(response: httpx.Response, host: str, max_bytes: int) -> None:
    """Limit a response's body, and decode its text by an encoding of the web. httpx would use any codec of Python.

    Raises:
        InvalidRequest: (`url_unavailable`) its content coding was not requested.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding and encoding != "identity" and encoding not in ENCODINGS:
        message = f"{host} used an encoding that was not requested: {encoding[:40]!r}"
        raise InvalidRequest(message, code="url_unavailable")
    packed = encoding in ENCODINGS
    # httpx would decompress the body itself, without a limit, and the length is that of the compressed body.
    if packed:
        del response.headers["content-encoding"]
        response.headers.pop("content-length", None)
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - an asynchronous transport's always is
    response.stream = BoundedBody(response.stream, host, max_bytes, packed=packed)
    response.encoding = find_codec(response.charset_encoding or "") or "utf-8"


class BoundedBody(httpx.AsyncByteStream):
    """A body of at most `limit` bytes, before and after decompression. It keeps one piece of 64 KB in memory.

    Raises:
        InvalidRequest: (`url_too_large`) it is larger; (`url_unavailable`) it cannot be decompressed.
    """

    def __init__(self, body: httpx.AsyncByteStream, host: str, limit: int, *, packed: bool) -> None:
        self._body = body
        self._host = host
        self._limit = limit
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = unpacked = chunks = 0
        async for chunk in self._body:
            received += len(chunk)
            chunks += 1
            if chunks > MOST_CHUNKS:
                raise InvalidRequest(
                    f"{self._host} sent more than {MOST_CHUNKS:,} chunks, the maximum",
                    code="url_too_large",
                )
            # Also counted compressed: what expands to nothing would otherwise arrive without end.
            self._hold(received)
            for piece in self._unpack(chunk):
                unpacked += len(piece)
                self._hold(unpacked)
                if unpacked > LARGE:
                    await acquire_for_large_answer()
                yield piece

    async def aclose(self) -> None:
        await self._body.aclose()

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        if self._inflater is None:
            yield chunk
            return
        try:
            # At most one piece at a time, so that a zip bomb is refused after 64 KB more than the limit. What follows
            # the end of the compressed data is ignored.
            while chunk and not self._inflater.eof:
                yield self._inflater.decompress(chunk, _PIECE)
                chunk = self._inflater.unconsumed_tail
        except zlib.error as error:
            raise InvalidRequest(
                f"The response of {self._host} cannot be decompressed ({error})", code="url_unavailable"
            ) from error

    def _hold(self, size: int) -> None:
        if size > self._limit:
            raise InvalidRequest(
                f"The response of {self._host} has more than {self._limit:,} bytes, the maximum",
                code="url_too_large",
            )
