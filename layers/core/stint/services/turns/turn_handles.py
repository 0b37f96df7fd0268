"""Handles of turns that this process runs, and of those that another one runs.

A route gets one of them for each turn, and does not see the difference: the events of a run, or those that a process
reads from the store. Only the run itself has its metrics recorded, so a turn that many clients follow counts once.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from stint.domain.errors import DeadlineExceeded, StintError, StoreUnavailable
from stint.domain.inference import Usage
from stint.domain.llama_stack.events import (
    Event,
    NumberedEvent,
    TurnAwaitingInput,
    TurnComplete,
    TurnFailed,
    TurnStart,
)
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_events import ReasoningEnded, ReasoningProgress
from stint.services.runs.run_handle import RunHandle, RunObserver, close_on, open_events
from stint.services.turns.turn_run import TurnRun
from stint.services.turns.turns import Turns

TurnHandle = RunHandle[NumberedEvent, Turn]

ENDINGS = (TurnComplete, TurnAwaitingInput, TurnFailed)


class StartedTurn:
    """The handle of a turn that this process has started."""

    def __init__(
        self, turns: Turns, run: TurnRun, observer: RunObserver | None, *, shows_reasoning: bool = False
    ) -> None:
        self._turns, self._run, self._observer = turns, run, observer
        self._shows_reasoning = shows_reasoning

    @property
    def turn(self) -> StoredTurn:
        """Return what is stored of the turn. It grows while the turn runs."""
        return self._run.log.turn

    @property
    def error(self) -> StintError | None:
        return self._run.error

    async def open(self, seconds: float) -> AsyncGenerator[NumberedEvent, None]:
        return await open_events(self.events(), seconds, self)

    def events(self) -> AsyncGenerator[NumberedEvent, None]:
        events = self._turns.run(self._run, shows_reasoning=self._shows_reasoning)
        return number_events(events, self._run.first_event, self._observer, self._run.used)

    async def announced_events(self) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of a turn that no status announces: also one that fails at once has its start, as in its
        replay.
        """
        announcement, shift = self._run.announcement, 0
        async with aclosing(self.events()) as events:
            async for numbered in events:
                if announcement is not None and numbered.event is not announcement:
                    shift = 1
                    yield NumberedEvent(numbered.number, announcement)
                announcement = None
                yield NumberedEvent(numbered.number + shift, numbered.event)

    async def wait_for_start(self, _until: float) -> None:
        return None

    async def outcome(self) -> Turn:
        return await read_outcome(self.events())

    async def finish(self) -> None:
        await self._turns.write_segments(self._run)
        await self._turns.meters.stops.settle()

    async def send_trace(self) -> None:
        await self._turns.send_trace(self._run)


class FollowedTurn:
    """The handle of a turn that another request runs. Its stream begins at once, as its status is known."""

    def __init__(self, events: AsyncGenerator[NumberedEvent, None]) -> None:
        self._events = events
        self.error: StintError | None = None

    async def open(self, _seconds: float) -> AsyncGenerator[NumberedEvent, None]:
        return close_on((DeadlineExceeded, StoreUnavailable), self._events)

    async def events(self) -> AsyncGenerator[NumberedEvent, None]:
        async with aclosing(self._events):
            async for numbered in self._events:
                if isinstance(numbered.event, TurnFailed):
                    self.error = numbered.event.error
                yield numbered

    async def wait_for_start(self, _until: float) -> None:
        return None

    async def outcome(self) -> Turn:
        return await read_outcome(self.events())

    async def finish(self) -> None:
        """Do nothing: the process that runs the turn does it."""

    async def send_trace(self) -> None:
        """Do nothing, likewise."""


async def number_events(
    events: AsyncGenerator[Event, None], first: int, observer: RunObserver | None, used: Usage | None
) -> AsyncGenerator[NumberedEvent, None]:
    """Yield the events of a run with their numbers among those of the turn, and let the observer record its metrics.

    `used` is the usage of the turn before it was resumed.
    """
    number = first
    async with aclosing(events):
        async for event in events:
            if isinstance(event, ReasoningProgress | ReasoningEnded):  # a replay has none, and the same numbers
                yield NumberedEvent(number, event)
                continue
            if observer is not None:
                if number == first:
                    observer.time_first_event()
                if isinstance(event, TurnStart):
                    observer.count_started_turn()
                elif isinstance(event, ENDINGS):
                    observer.count_ended_turn(event.turn.usage, used, failed=isinstance(event, TurnFailed))
            yield NumberedEvent(number, event)
            number += 1


async def read_outcome(events: AsyncIterator[NumberedEvent]) -> Turn:
    """Return the turn of the terminal event, which is the last one."""
    [turn] = [each.event.turn async for each in events if isinstance(each.event, ENDINGS)]
    return turn
