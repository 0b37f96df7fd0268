"""A receiver of traces that speaks OTLP over HTTP, with JSON.

Its URL is an operator's setting, so it may be in a private network, unlike callers' URLs. A redirect is not followed:
it would send the headers, which may have a key, to a server that nobody has named.

https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
https://opentelemetry.io/docs/specs/otel/protocol/exporter/
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from stint.domain.known_secrets import remember_own
from stint.domain.otlp_headers import parse_headers
from stint.http1.client import HttpClient
from stint.http1.pool import TransportError

LONGEST_ANSWER = 65_536
"""Bytes of an answer that are read, so that its connection can be used again."""

ReadHeaders = Callable[[], Awaitable[str | None]]


class TraceRefused(Exception):
    """A receiver does not accept a trace."""


class OtlpReceiver:
    """A receiver at the URL of its traces. `read_headers` returns the headers in the form of the variable."""

    name = "otlp"

    def __init__(self, url: str, read_headers: ReadHeaders, client: HttpClient) -> None:
        self._url, self._read_headers, self._client = url, read_headers, client

    async def receive(self, body: bytes) -> None:
        """Send a document.

        Raises TraceRefused, TransportError, InvalidURL and InvalidProxy, and ValueError for malformed headers.
        """
        given = parse_headers(await self._read_headers() or "")
        for value in given.values():
            remember_own(value)  # the error of a proxy may quote it
        headers = {"user-agent": "stint", **given, "content-type": "application/json"}
        try:
            await self._send(headers, body)
        except TransportError as error:
            if not error.stale:
                raise
            # A process that was suspended meets connections that the receiver has closed.
            await self._send(headers, body)

    async def _send(self, headers: dict[str, str], body: bytes) -> None:
        async with self._client.stream("POST", self._url, headers, body) as stream:
            if not 200 <= stream.status < 300:
                raise TraceRefused(f"The receiver answered with status {stream.status}.")
            with suppress(TransportError):  # it has accepted the trace, whatever else it says
                await stream.read(LONGEST_ANSWER)
