"""Bodies of responses from servers that callers choose: decompressed, counted and decoded within limits."""

import zlib
from collections.abc import AsyncIterator, Iterator

import httpx

from stint.domain.errors import InvalidRequest
from stint.net.encodings import find_codec
from stint.net.large_answers import LARGE, acquire_for_large_answer

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""Supported content codings (RFC 9110, section 8.4.1). Several codings at once are refused, against zip bombs."""

MOST_CHUNKS = 40_000
"""Maximum chunks of one body, whatever their size: each takes 40 microseconds of CPU time."""

_PIECE = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


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
