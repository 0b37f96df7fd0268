"""The stop of a run by an admin, and its cancellation by a client, or without it. All tasks of a request share it.

A run has an error at most once, and the first one stays. Whatever the run awaits at that time is in a timeout that
`expiring_on_stop` has registered: `end` lets all of them expire, so a run ends at once and not at its next step.

    what ends a run                        who tells                               error
    a stop of the tenant, an agent, a      `check`, when the run begins; then      Stopped
    session, a key ...                     `StopMonitor`, about every second
    a cancellation by a client             `StopMonitor`, once the run has a name  Cancelled
                                           (`receive_signals`)
    no heartbeat for some time, if the     the same, by the clock of this process  Cancelled
    request has `on_disconnect` cancel

The stops are read beside whatever else is read at the beginning, so that no run waits for them, or an answer serves
that is some seconds old. A stop in an old answer may have been lifted, so it is read again. `refuse_stopped` waits for
the answer; `admit_model_call` does so only if an earlier read found a stop of the tenant (`suspected`).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Protocol

from stint.dataclasses import dataclass
from stint.domain.errors import Cancelled, StintError, Stopped
from stint.domain.run_signals import (
    HEARTBEAT_SECONDS,
    HEARTBEAT_TIMEOUT_SECONDS,
    OnDisconnect,
    RunRef,
    RunSignals,
)
from stint.domain.stops import describe_stop

MESSAGE = "{} was stopped by an admin. Finished steps are stored. Ask an admin of the tenant to lift the stop."
CANCELLED = "The run was cancelled. Finished steps are stored."
DISCONNECTED = (
    f"The run was cancelled, because its client sent no heartbeat for {HEARTBEAT_TIMEOUT_SECONDS} s. Finished steps "
    "are stored."
)


@dataclass(frozen=True, slots=True)
class RunDescription:
    """A turn or a response as the list of running runs shows it, once it has lasted a while.

    `labels` are those of its model calls, with the caller's key and the hash of the end user.
    """

    ref: RunRef
    model: str
    labels: tuple[tuple[str, str], ...] = ()
    conversation_id: str | None = None
    background: bool = False


@dataclass(slots=True)
class ClientPresence:
    """Whether a client that sends heartbeats is still there. Before its first one, nothing is known.

    Only the clock of this process counts: `heard_at` is when a heartbeat was first read, `read_at` the last time when
    one was looked for.
    """

    heartbeat_at: int | None = None
    heard_at: float = 0.0
    read_at: float = 0.0

    def is_gone(self, heartbeat_at: int | None) -> bool:
        """Note the time of the last heartbeat as it is stored, and return whether the client is gone.

        After a pause in which nothing was read, such as a failure of the store, the client has the whole time again.
        """
        if heartbeat_at is None:
            return False
        now = asyncio.get_running_loop().time()
        if heartbeat_at != self.heartbeat_at or now - self.read_at > HEARTBEAT_SECONDS:
            self.heartbeat_at, self.heard_at = heartbeat_at, now
        self.read_at = now
        return now - self.heard_at >= HEARTBEAT_TIMEOUT_SECONDS


class Limit(Protocol):
    """A time limit of something that a run awaits, such as `asyncio.Timeout`."""

    def expired(self) -> bool:
        """Return whether the limit has passed."""
        ...

    def reschedule(self, when: float) -> None:
        """Change the limit to a time of the event loop's clock."""
        ...


class RunStop:
    """Whether a run was stopped. `names` are those of the stops that end it.

    `check` reads the stops when the run begins, beside whatever else is read. With `suspected`, a stop was known before
    that, so that no model is called until the check has ended. If the check is an older answer, `read` reads the stops.
    `run` is the run as other processes name it, once they
    may send it signals. `client` is set if the run ends without its client.
    `began` has the times when it began, by the wall clock and the monotonic one, and `description` is there once it has
    an id.
    """

    __slots__ = (
        *("__weakref__", "began", "check", "client", "description", "error", "limits", "names", "read", "run"),
        "suspected",
    )

    def __init__(self, names: Collection[str]) -> None:
        self.names = set(names)
        self.began = time.time(), time.monotonic()
        self.description: RunDescription | None = None
        self.suspected = False
        self.check: asyncio.Future[Collection[str]] | None = None
        self.read: Callable[[], asyncio.Future[Collection[str]]] | None = None
        self.run: RunRef | None = None
        self.client: ClientPresence | None = None
        self.error: StintError | None = None
        self.limits: set[Limit] = set()

    def apply(self, stops: Collection[str]) -> None:
        """Stop the run if a stop names it: whatever it awaits ends at once."""
        named = sorted(self.names.intersection(stops))
        if named:
            self.end(Stopped(MESSAGE.format(describe_stop(named[0]))))

    def receive(self, signals: RunSignals) -> None:
        """Cancel the run if a signal says so, or if heartbeats are missing."""
        if signals.cancelled:
            self.end(Cancelled(CANCELLED))
        elif self.client is not None and self.client.is_gone(signals.heartbeat_at):
            self.end(Cancelled(DISCONNECTED))

    def end(self, error: StintError) -> None:
        """End the run with an error, unless it ends already: whatever it awaits ends at once."""
        if self.error is not None:
            return
        self.error = error
        for limit in self.limits:
            expire(limit)

    async def confirm(self) -> None:
        """Wait for the check of the beginning. Raises Stopped, or StoreUnavailable."""
        if self.check is not None:
            if self.read is not None and self.names.intersection(self.check.result()):
                self.check, self.read = self.read(), None
            if not self.check.done():
                await asyncio.wait({self.check})
            self.apply(self.check.result())
        self.raise_error()

    def raise_error(self) -> None:
        if self.error is not None:
            raise self.error


def expire(limit: Limit) -> None:
    """Let a timeout expire now."""
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time())


_run_stop: ContextVar[RunStop | None] = ContextVar("run_stop", default=None)


def set_run_stop(stop: RunStop | None) -> None:
    """Set the stop of the run of the following code in this context, and of the tasks that it starts."""
    _run_stop.set(stop)


def find_run_stop() -> RunStop | None:
    """Return the stop of the current run, or None outside of one."""
    return _run_stop.get()


async def refuse_stopped(*names: str) -> None:
    """Wait until it is known whether the current run may begin; `names` are those of further stops that end it.

    Raises:
        Stopped: an object of the run, the caller's key or the tenant was stopped.
        StoreUnavailable: the stops cannot be read.
    """
    stop = _run_stop.get()
    if stop is not None:
        stop.names.update(names)
        await stop.confirm()


def receive_signals(run: RunRef) -> None:
    """Let the current run receive signals from now on, under this name."""
    stop = _run_stop.get()
    if stop is not None:
        stop.run = run


def describe_run(description: RunDescription) -> None:
    """Let the list of running runs show the current run, should it last long."""
    stop = _run_stop.get()
    if stop is not None:
        stop.description = description


def set_on_disconnect(chosen: OnDisconnect | None) -> None:
    """Set what the current run does without its client."""
    stop = _run_stop.get()
    if stop is not None and chosen == "cancel":
        stop.client = ClientPresence()


async def admit_model_call() -> None:
    """Refuse a model call of a run that was stopped. Raises as `refuse_stopped`."""
    stop = _run_stop.get()
    if stop is not None and stop.suspected:
        await stop.confirm()
    raise_if_stopped()


def raise_if_stopped() -> None:
    """Raise Stopped if the current run was stopped, or Cancelled if it was cancelled."""
    stop = _run_stop.get()
    if stop is not None:
        stop.raise_error()


@contextmanager
def expiring_on_stop(limit: Limit) -> Iterator[None]:
    """Let a timeout expire when the current run is stopped while the body runs."""
    stop = _run_stop.get()
    if stop is None:
        yield
        return
    if stop.error is not None:
        expire(limit)
    stop.limits.add(limit)
    try:
        yield
    finally:
        stop.limits.discard(limit)


@asynccontextmanager
async def ending_on_stop() -> AsyncGenerator[None, None]:
    """Cancel the body when the current run is stopped. Raises Stopped then."""
    limit = asyncio.timeout(None)
    try:
        async with limit:
            with expiring_on_stop(limit):
                yield
    except TimeoutError:
        if limit.expired():
            raise_if_stopped()
        raise
