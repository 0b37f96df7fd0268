"""Credentials of calls, refreshed before they expire.

  time until the expiry   a call
  more than 15 min        uses the credentials
  10 to 15 min            uses them, and starts a refresh in the background; its failure is ignored
  less than 10 min        waits for the refresh, and fails with it
  none loaded             likewise

All threads share one refresh, a `concurrent.futures.Future`. It runs as a task of the event loop of the call that
started it, and another loop can be waiting for it. If that loop ends, its task is cancelled, possibly before its first
step. `_abort` then ends the future with RefreshAborted, and each waiting call starts or joins another refresh in its
own loop. A caller that is cancelled does not cancel the refresh, since others wait for it.

AWS can refuse credentials before their expiry. `renew` replaces them unless another call has done so meanwhile: it
compares the refused ones with the current ones.
"""

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
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "UnrecognizedClientException",
    }
)
"""The codes with which AWS refuses credentials that have expired or were replaced."""

PRINTABLE = re.compile(r"[\x21-\x7e]*")


class CredentialsError(Exception):
    """There are no usable credentials."""


class RefreshAborted(CredentialsError):
    """The event loop of a refresh ended before it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key, whose representation is hidden."""

    access_key: str = field(repr=False)
    """The id of the access key."""
    secret_key: str = field(repr=False)
    """The key of signatures. It is never sent."""
    token: str = field(default="", repr=False)
    """The session token of temporary credentials; empty for permanent ones."""
    expires_at: float | None = None
    """Seconds of the Unix epoch; None: they do not expire."""

    def __post_init__(self) -> None:
        # They become values of headers: a line break in one would add a header.
        if not (self.access_key and self.secret_key and PRINTABLE.fullmatch(self.access_key + self.token)):
            raise CredentialsError(
                "The AWS credentials are incomplete or malformed. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            )


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
        # The lock is held for an assignment only, so a thread with an event loop may wait for it.
        with self._lock:
            if self._refreshing is not None and not self._refreshing.done():
                return self._refreshing
            result = self._refreshing = Future[Credentials]()
        task = asyncio.get_running_loop().create_task(self._refresh(result, renewed))
        # An event loop keeps only weak references to its tasks.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # A callback, because a task that is cancelled before its first step never reaches a `finally`.
        task.add_done_callback(lambda _: _abort(result))
        return result

    async def _refresh(self, result: Future[Credentials], renewed: bool) -> None:
        try:
            loaded = await self._provider.load(renewed=renewed)
            # An endpoint that sends expired credentials would be asked by every call, and its answers refused by AWS.
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
