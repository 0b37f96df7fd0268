"""The events of a run for a reader that rejoins its stream: those of its log, followed by new ones.

The reader has lost its connection to the process that runs the run, so it gets the same events, with the same numbers,
from what that process stores. Everything is replayed from the first event on, and those that the reader has are
dropped, because only a replay of the whole log counts as the first stream did.

| the run                | what is read                            | where its events end                           |
|------------------------|-----------------------------------------|------------------------------------------------|
| runs                   | its log and its unfinished step, polled | after the ending, or with DeadlineExceeded     |
| is quiet               | also whether its process is alive       | likewise                                       |
| was interrupted        | its log and its unfinished step, once   | with the failure, even if its number is lower  |
|                        |                                         | than that of the reader's last event           |
| ended, or awaits input | its log, once                           | with the last record                           |

A process stores parts of a step some time after it streamed them. If it dies, the reader may have had events that
nobody knows any more, and then the number of the failure is lower than that of the reader's last event.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, Protocol, TypeVar

from stint.dataclasses import dataclass
from stint.domain.errors import Interrupted, InvalidRequest
from stint.domain.partial_steps import PartialStep
from stint.domain.steps import Step
from stint.services.runs.polling_pauses import PollingPauses
from stint.store.keys import PartialPlace
from stint.store.partial_steps import PartialStepStore

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)
R = TypeVar("R")


class EndingError(Protocol):
    """The error of an ending."""

    code: str


class RunEnding(Protocol):
    """The ending of a run, or of its part before a pause."""

    @property
    def error(self) -> EndingError | None: ...


class LoggedRun(Protocol[R]):
    """A stored turn or response, whose `ending` is None while it runs."""

    records: list[R]

    @property
    def ending(self) -> RunEnding | None: ...
    @property
    def steps(self) -> Sequence[Step]: ...


class RunReplay(Protocol[R, E_co]):
    """Makes the events of a run, record by record. `stored` has the records so far, and `count` is that of its events.

    `emit_records` adds records and yields their events. `emit_partial` yields those events of the unfinished step that
    were not yielded yet.
    """

    @property
    def stored(self) -> LoggedRun[R]: ...
    @property
    def count(self) -> int: ...
    def emit_start(self) -> Iterator[E_co]: ...
    def emit_records(self, records: Iterable[R], /) -> Iterator[E_co]: ...
    def emit_partial(self, partial: PartialStep, /) -> Iterator[E_co]: ...


class PartialReader:
    """Reads the unfinished step of a run, each part once."""

    def __init__(self, store: PartialStepStore, place: PartialPlace) -> None:
        self.store = store
        self.place = place
        self.partial: PartialStep | None = None
        self.since = ""

    async def read(self, last_step: str | None) -> PartialStep | None:
        """Return the step after the last stored one as far as it is known; None if no part of it is stored."""
        earliest = self.place.after_step(last_step)
        if self.since < earliest:
            self.since, self.partial = earliest, None
        for sk, part in await self.store.read(self.place, self.since):
            if self.partial is None or self.partial.step_id != part.step_id:
                self.partial = part
            else:
                self.partial = self.partial.extended(part)
            self.since = f"{sk}~"
        return self.partial


@dataclass(frozen=True, slots=True)
class RunTail(Generic[R, E]):
    """A run that one reader follows."""

    replay: RunReplay[R, E]
    partials: PartialReader
    read_rest: Callable[[int], Awaitable[Sequence[R]]]
    """Reads the records of the log from an index on. Raises NotFound if the run was deleted."""

    check_process: Callable[[], Awaitable[Sequence[R]]]
    """Reads the whole log, with an ending if the run's process died. Raises NotFound."""

    quiet_seconds: float
    """Seconds without a new record before the process is checked."""

    quiet_growth: int = 1
    """The factor of `quiet_seconds` after each check that found no record."""

    async def follow(self, stored: LoggedRun[R], after: int, deadline: float, beyond: str) -> AsyncGenerator[E, None]:
        """Return the events after a number, -1 for all, up to the last one.

        The iterator ends when the run has ended or waits for its client. `deadline` is a time of the event loop's
        clock, after which the iterator raises DeadlineExceeded. It raises NotFound if the run is deleted.

        Raises:
            InvalidRequest: the run has ended, and has no event with that number. Its message is `beyond`, in which `{}`
                is replaced by the number of events.
        """
        events = await self.replay_log(stored)
        if after >= self.replay.count and stored.ending is not None and not was_interrupted(stored):
            raise InvalidRequest(beyond.format(self.replay.count), param="starting_after")
        return self.events_after(after, events, deadline)

    async def replay_log(self, stored: LoggedRun[R]) -> list[E]:
        """Return the events of a stored run. What is known of an interrupted step comes before its failure."""
        replay = self.replay
        events = [*replay.emit_start()]
        if was_interrupted(stored):
            events += replay.emit_records(stored.records[:-1])
            events += await self.read_partial()
        return [*events, *replay.emit_records(stored.records[len(replay.stored.records) :])]

    async def read_partial(self) -> Iterator[E]:
        """Return the events of the unfinished step that were not yielded yet."""
        return self.emit_partial(await self.partials.read(self.last_step))

    def emit_partial(self, partial: PartialStep | None) -> Iterator[E]:
        """Yield the events of a step that were not yielded yet, unless it is stored by now."""
        if partial is not None and partial.step_id > (self.last_step or ""):
            yield from self.replay.emit_partial(partial)

    @property
    def last_step(self) -> str | None:
        """Return the id of the last stored step."""
        return max((step.step_id for step in self.replay.stored.steps), default=None)

    async def events_after(self, after: int, events: list[E], deadline: float) -> AsyncGenerator[E, None]:
        """Yield the events after a number. The last event of an interrupted run may have a lower one."""
        number = -1
        async for event in self.all_events(events, deadline):
            number += 1
            last = number == self.replay.count - 1 and was_interrupted(self.replay.stored)
            if number > after or (number < after and last):
                yield event

    async def all_events(self, events: list[E], deadline: float) -> AsyncGenerator[E, None]:
        """Yield events, and those of new records and of parts of the next step while the run runs."""
        for event in events:
            yield event
        pauses, clock = PollingPauses(deadline), asyncio.get_running_loop().time
        seen_at, patience = clock(), self.quiet_seconds
        while self.replay.stored.ending is None:
            quiet = clock() - seen_at >= patience
            # The parts first: what is stored before a step, such as messages that its turn takes, is read with it.
            partial = await self.partials.read(self.last_step)
            records = await self.read_records(quiet=quiet)
            if records or quiet:
                seen_at, patience = clock(), self.quiet_seconds if records else self.quiet_growth * patience
            for event in chain(self.replay.emit_records(records), self.emit_partial(partial)):
                pauses.reset()
                yield event
            if self.replay.stored.ending is None:
                await pauses.wait()

    async def read_records(self, *, quiet: bool) -> Sequence[R]:
        """Return new records. If a `quiet` run has none, check its process."""
        start = len(self.replay.stored.records)
        records = await self.read_rest(start)
        return (await self.check_process())[start:] if quiet and not records else records


def was_interrupted(stored: LoggedRun[R]) -> bool:
    """Return whether a run's process died, so that its stream may have had events that were not stored."""
    error = stored.ending.error if stored.ending else None
    return error is not None and error.code == Interrupted.code
