"""Connections to a server with one of OpenAI's APIs."""

import asyncio
from typing import Any

import httpx

LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=55.0)
"""The callers limit the calls at once. Load balancers and proxies close idle connections after 60 seconds, mostly."""


class Connections:
    """The client of each event loop, because connections cannot be used in another one."""

    def __init__(self, client: httpx.AsyncClient | None = None) -> None:
        self._given = client
        self._own: tuple[asyncio.AbstractEventLoop, httpx.AsyncClient] | None = None

    def client(self) -> httpx.AsyncClient:
        """Return the client of this event loop, or the one that was passed in."""
        if self._given is not None:
            return self._given
        loop = asyncio.get_running_loop()
        if self._own is None or self._own[0] is not loop:
            self._own = (loop, httpx.AsyncClient(limits=LIMITS))
        return self._own[1]

    async def aclose(self) -> None:
        """Close the connections, unless the client was passed in."""
        if self._own is not None:
            _, client = self._own
            self._own = None
            await client.aclose()


class ConnectionTrace:
    """The events of one request, from httpcore: whether it was sent on an idle connection, and answered."""

    def __init__(self) -> None:
        self._is_new = self._is_sent = self._is_answered = False

    async def __call__(self, event: str, _: dict[str, Any]) -> None:
        self._is_new |= event.startswith("connection.")
        self._is_sent |= event.endswith("send_request_headers.started")
        self._is_answered |= event.endswith("receive_response_headers.complete")

    def has_lost_idle_connection(self, error: Exception) -> bool:
        """Return whether a request failed since its connection had been dropped, unnoticed, while it was idle.

        Servers and hosts between do so, also while this process is frozen.
        """
        is_lost = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError)
        return is_lost and self._is_sent and not (self._is_new or self._is_answered)
