"""Watching of stops and signals while a tenant's runs run: one read a second for all runs of a process.

Stops are records, since the process that gets the admin's request is seldom the one that runs the work. Reading them
before each model call would delay every call, so they are read beside the work:

    when a run begins    nothing, if other runs are there, and an answer of the last ANSWER_SECONDS does not name it;
                         otherwise a read that the run does not wait for, unless an earlier one found a stop of the
                         tenant (`suspected`), or the run's code asks for it (`refuse_stopped`)
    each second          one read for all runs, with the signals to those that can receive them. Runs that have lasted
                         LONG_SECONDS are listed (`stint.spending.running_list`)
    no run is left       the task ends, so an idle process reads nothing

A failure of the first read refuses the run, because a stop must not fail open. That of a later one stops no run,
because the next one is a second after it. `runs` holds them weakly, so that one
whose end was never reached is not watched for ever.
"""

import asyncio
import logging
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from stint.caller import find_principal
from stint.domain.errors import StoreUnavailable
from stint.domain.limits import MAX_CALL_DEPTH
from stint.domain.stops import WHOLE_TENANT, stop_name
from stint.lazy import Lazy, lazy
from stint.metering import set_meter
from stint.run_stop import RunStop, find_run_stop, set_run_stop
from stint.store.store import Store

if TYPE_CHECKING:  # loaded by the first run that lasts long
    from stint.spending.running_list import RunningList

logger = logging.getLogger(__name__)

WATCH_SECONDS = 1.0
"""Seconds between two reads of the stops: the longest time until a stop ends running work, but for that of a read."""

LONG_SECONDS = 10.0
"""Seconds after which a run is listed. Shorter ones write nothing for it."""

ANSWER_SECONDS = 2.0
"""Longest time for which what a read has found holds for runs that begin: until a stop refuses new work.

Two reads of a watch: one that fails leaves the answer of the one before.
"""


class StopMonitor:
    """Ends a tenant's runs that an admin stops or a client cancels. While none runs, nothing is read."""

    def __init__(self, tenant: str, store: Store) -> None:
        self.tenant = tenant
        self.store = store
        self.known: Collection[str] = ()
        self.known_at: tuple[float, float] | None = None
        self.runs: WeakSet[RunStop] = WeakSet()
        self.watching: asyncio.Task[None] | None = None

    running: "Lazy[StopMonitor, RunningList]" = lazy(
        "stint.spending.running_list:RunningList", lambda self, cls: cls(self.tenant, self.store)
    )

    def begin(self) -> None:
        """Begin to watch the run that begins here, and to check whether it may.

        Raises CallTooDeep if too many agents have called each other before it.
        """
        principal = find_principal()
        if principal is not None and principal.call_depth > MAX_CALL_DEPTH:
            from stint.domain.call_depth import refuse_depth  # noqa: PLC0415 - few agents reach themselves

            raise refuse_depth(principal.call_depth)
        stop = RunStop({WHOLE_TENANT})
        if principal is not None and principal.key_id:
            stop.names.add(stop_name("key", principal.key_id))
        stop.suspected = bool(self.known)
        if self.is_fresh() and not stop.names.intersection(self.known):
            stop.check, stop.read = asyncio.get_running_loop().create_future(), self.begin_read
            stop.check.set_result(self.known)
        else:
            stop.check = self.begin_read()
        self.runs.add(stop)
        set_run_stop(stop)
        # Done: it found no run, because those that were watched are gone without an `end`, or it failed.
        if self.watching is None or self.watching.done():
            self.watching = asyncio.create_task(self.watch())

    def is_fresh(self) -> bool:
        """Return whether the last answer holds for runs that begin."""
        # Only while there are runs: without any, the process may have been frozen, and its clocks may be behind.
        return bool(self.runs) and self.known_at is not None and age_of(self.known_at) <= ANSWER_SECONDS

    def begin_read(self) -> asyncio.Task[Collection[str]]:
        """Begin to read the stops, and to end the runs that they name."""
        check = asyncio.create_task(self.read())
        check.add_done_callback(note_result)
        return check

    def end(self) -> None:
        """Stop watching the current run, and begin to remove it from the list of running runs."""
        stop = find_run_stop()
        if stop is not None:
            self.runs.discard(stop)
            if self.lists_runs:
                self.running.remove(stop)
        if self.runs:
            return
        self.known_at = None
        if self.watching is not None:
            self.watching.cancel()
            self.watching = None

    @property
    def lists_runs(self) -> bool:
        """Return whether a run of this process has been listed."""
        return "running" in vars(self)

    def list_long_runs(self) -> None:
        """Begin to list runs that have lasted long, and to renew their records."""
        now = time.monotonic()
        for stop in list(self.runs):
            if stop.description is not None and now - stop.began[1] >= LONG_SECONDS:
                self.running.show(stop, stop.description)

    async def settle(self) -> None:
        """Wait until the runs that have ended are not listed. Nothing is raised."""
        if self.lists_runs:
            await self.running.settle()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the body as a run."""
        self.begin()
        try:
            yield
        finally:
            self.end()

    async def read(self) -> Collection[str]:
        """Read the stops, and end the runs that they name. Raises StoreUnavailable."""
        began = time.time(), time.monotonic()
        stops = await self.store.stops.read(self.tenant)
        self.apply(stops, began)
        return stops

    async def read_signals(self) -> None:
        """Read the stops and the signals to the runs together, and end the runs that they name.

        Raises StoreUnavailable.
        """
        named = {stop.run for stop in self.runs if stop.run is not None}
        if not named:
            await self.read()
            return
        began = time.time(), time.monotonic()
        stops, signals = await self.store.run_signals.read(self.tenant, list(named))
        self.apply(stops, began)
        for stop in list(self.runs):
            if stop.run is not None and stop.run in signals:
                stop.receive(signals[stop.run])

    def apply(self, stops: Collection[str], began: tuple[float, float]) -> None:
        """End the runs that stops name, which were read from `began` on."""
        # Several reads may be under way, and a later one may end first.
        if self.known_at is None or began[1] >= self.known_at[1]:
            self.known, self.known_at = stops, began
        for stop in list(self.runs):
            stop.apply(stops)

    async def watch(self) -> None:
        """Read stops and signals once a second, until no run is left. Its units are in the receipt of no run."""
        set_meter(None)
        set_run_stop(None)
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self.runs:
                return
            self.list_long_runs()
            try:
                await self.read_signals()
            except StoreUnavailable as error:
                logger.warning("The stops were not read; trying again", extra={"error": error.message})


def age_of(moment: tuple[float, float]) -> float:
    """Return the seconds since a time of both clocks, by the one that has advanced more.

    The monotonic clock of a frozen process may stand still, and a wall clock may be set back.
    """
    wall, monotonic = moment
    return max(time.time() - wall, time.monotonic() - monotonic)


def note_result(check: asyncio.Task[Collection[str]]) -> None:
    """Take the error of a check that nobody waits for, because the run failed before."""
    if not check.cancelled():
        check.exception()
