"""Credentials of AWS, and their refresh before they expire."""

import asyncio
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

from stint.dataclasses import dataclass, field

ADVISORY_SECONDS = 15 * 60
"""Time before the expiry from which credentials are refreshed in the background."""
MANDATORY_SECONDS = 10 * 60
"""Time before the expiry from which calls wait for the refresh."""

REFUSED_CREDENTIALS = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException"}
)
"""The codes with which AWS refuses credentials that have expired or were replaced."""

PRINTABLE = re.compile(r"[\x21-\x7e]*")


class CredentialsError(Exception):
    """There are no usable credentials."""


class RefreshAborted(CredentialsError):
    """The event loop of a refresh ended before it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key, whose representation is hidden. `expires_at` is in seconds of the Unix epoch, None for never."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)
    expires_at: float | None = None

    def __post_init__(self) -> None:
        if not (self.access_key and self.secret_key and PRINTABLE.fullmatch(self.access_key + self.token)):
            raise CredentialsError("The AWS credentials are incomplete or malformed.")


class CredentialsProvider(Protocol):
    """A source of credentials."""

    async def load(self, *, renewed: bool) -> Credentials:
        """Return the credentials. `renewed`: AWS refused the last ones. Raises CredentialsError."""
        ...


class CredentialsSource(Protocol):
    """The credentials of calls."""

    async def get(self) -> Credentials:
        """Return valid credentials. Raises CredentialsError."""
        ...

    async def renew(self, refused: Credentials) -> bool:
        """Replace credentials that AWS refused. Return whether there are others."""
        ...

    def forget(self) -> None:
        """Load the credentials again for the next call."""
        ...


class StaticCredentials:
    """Credentials that never change."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    async def load(self, *, renewed: bool) -> Credentials:  # noqa: ARG002 - there are no others
        return self._credentials


class RefreshedCredentials:
    """The credentials of a provider, refreshed before they expire. Calls of all threads share one refresh."""

    def __init__(self, provider: CredentialsProvider, now: Callable[[], float] = time.time) -> None:
        self._provider = provider
        self._now = now
        self._current: Credentials | None = None
        self._refreshing: Future[Credentials] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    async def get(self) -> Credentials:
        """Return valid credentials. Raises CredentialsError."""
        current = self._current
        if current is None:
            return await self._wait_for(self._start())
        left = float("inf") if current.expires_at is None else current.expires_at - self._now()
        if left <= MANDATORY_SECONDS:
            return await self._wait_for(self._start())
        if left <= ADVISORY_SECONDS:
            self._start()  # a failure is tried again by the next call
        return current

    async def renew(self, refused: Credentials) -> bool:
        """Replace credentials that AWS refused. Return whether there are others."""
        if self._current is None or self._current == refused:
            with suppress(CredentialsError):
                await self._wait_for(self._start(renewed=True))
        return self._current is not None and self._current != refused

    def forget(self) -> None:
        """Load the credentials again for the next call."""
        self._current = None

    def _start(self, *, renewed: bool = False) -> Future[Credentials]:
        """Start a refresh unless one is running, and return its result."""
        with self._lock:
            if self._refreshing is not None and not self._refreshing.done():
                return self._refreshing
            result = self._refreshing = Future[Credentials]()
        task = asyncio.get_running_loop().create_task(self._refresh(result, renewed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: _abort(result))
        return result

    async def _refresh(self, result: Future[Credentials], renewed: bool) -> None:
        try:
            loaded = await self._provider.load(renewed=renewed)
            if loaded.expires_at is not None and loaded.expires_at <= self._now():
                raise CredentialsError("The AWS credentials have expired.")
        except Exception as error:  # noqa: BLE001 - those who wait raise it
            result.set_exception(error)
        else:
            self._current = loaded
            result.set_result(loaded)

    async def _wait_for(self, result: Future[Credentials]) -> Credentials:
        """Wait for a refresh, and begin another one if the event loop of the first one ends."""
        while True:
            waiting = asyncio.wrap_future(result)
            waiting.add_done_callback(_retrieve)
            await asyncio.wait({waiting})  # unlike `await waiting`, does not cancel it
            try:
                return waiting.result()
            except RefreshAborted:
                result = self._start()


def _abort(result: Future[Credentials]) -> None:
    """End a refresh that was cancelled, possibly before its first step, so that no call waits for it."""
    if not result.done():
        result.set_exception(RefreshAborted("The refresh of the AWS credentials was aborted."))


def _retrieve(done: asyncio.Future[Credentials]) -> None:
    """Mark an error as seen, since a caller that was cancelled does not see it."""
    if not done.cancelled():
        done.exception()
