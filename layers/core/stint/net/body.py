"""The body of an answer, decompressed and counted while it comes."""

import zlib
from collections.abc import AsyncIterator, Iterator

import httpx

from stint.domain.errors import InvalidRequest

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""What can be decompressed (RFC 9110, section 8.4.1). Packed more than once is not: that is how bombs are made."""

_PIECE = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class BoundedBody(httpx.AsyncByteStream):
    """At most `limit` bytes, before and after decompression; memory holds one piece of 64 KB, whatever was packed.

    Raises:
        InvalidRequest: (`url_too_large`) there is more; (`url_unavailable`) the data cannot be decompressed.
    """

    def __init__(self, body: httpx.AsyncByteStream, host: str, limit: int, *, packed: bool) -> None:
        self._body = body
        self._host = host
        self._limit = limit
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB) if packed else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = unpacked = 0
        async for chunk in self._body:
            received += len(chunk)
            self._hold(received)
            for piece in self._unpack(chunk):
                unpacked += len(piece)
                self._hold(unpacked)
                yield piece

    async def aclose(self) -> None:
        await self._body.aclose()

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        if self._inflater is None:
            yield chunk
            return
        try:
            while chunk and not self._inflater.eof:
                yield self._inflater.decompress(chunk, _PIECE)
                chunk = self._inflater.unconsumed_tail
        except zlib.error as error:
            raise InvalidRequest(
                f"The answer of {self._host} cannot be decompressed ({error})", code="url_unavailable"
            ) from error

    def _hold(self, size: int) -> None:
        if size > self._limit:
            raise InvalidRequest(
                f"The answer of {self._host} has more than {self._limit} bytes, which is the most that is read",
                code="url_too_large",
            )
