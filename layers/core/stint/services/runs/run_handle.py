"""Handles of runs: what a request gets for the run that it asks for, and how its answer is made from it.

A use case decides once what becomes of a request: it starts a run, it waits for a session or conversation in use, or it
follows the run of an earlier attempt. It returns a handle, so that each API, the worker and the event bus only read:

| handle        | `open`                          | `wait_for_start`        | `outcome`          | `error`             |
|---------------|---------------------------------|-------------------------|--------------------|---------------------|
| started here  | waits for the first event       | returns at once         | runs it to its end | set once it failed  |
| waiting       | waits for start and first event | until its turn comes    | after its start    | of the run          |
| followed      | returns at once                 | returns at once         | polls to its end   | set once it failed  |

A failure before the first event is an HTTP status; after it, no status can report it, and it is an event.

docs/decisions.md, entry 46, has the reasons.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, Generic, Protocol, TypeVar

from stint.caller import NO_ATTEMPT, RequestAttempt
from stint.dataclasses import dataclass, field
from stint.domain.errors import DeadlineExceeded, StintError
from stint.domain.inference import Usage
from stint.tools.port import NO_PROVIDER_DATA, ProviderData

T = TypeVar("T")
E = TypeVar("E", covariant=True)
D = TypeVar("D", covariant=True)

logger = logging.getLogger(__name__)


class RunObserver(Protocol):
    """Records the metrics of a request from the events of the run that it starts. Followed runs are not counted."""

    def time_first_event(self) -> None:
        """Record that the first event of a turn is there."""
        ...

    def count_started_turn(self) -> None:
        """Count a turn that begins with this request."""
        ...

    def count_ended_turn(self, usage: Usage | None, used: Usage | None, *, failed: bool) -> None:
        """Count the end of a turn, or its pause, and its tokens. `used` is its usage before it was resumed."""
        ...

    def follow_response(self, events: AsyncIterator[T], /) -> AsyncGenerator[T, None]:
        """Yield the events of a response."""
        ...


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The deadline, the attempt, the keys and the observer of a request, which its run gets beside the body."""

    deadline: float
    """The time of the event loop's clock at which the last event must be sent."""

    attempt: RequestAttempt = NO_ATTEMPT
    provider_data: ProviderData = field(default_factory=lambda: NO_PROVIDER_DATA)
    """The caller's keys for tools."""

    observer: RunObserver | None = None

    spares_waiting_turn: bool = False
    """A new turn waits for one that waits for its client's results, in place of cancelling it."""

    message_ids: Sequence[str] = ()
    """The client's ids of the messages of a new turn. It is refused if the last turn has one of them."""

    shows_reasoning: bool = False
    """The events of a turn have the model's reasoning, too, as it arrives. A turn does not store it."""


class RunHandle(Protocol[E, D]):
    """A run whose answer a request reads once, as the events `E` or as the document `D` of its end."""

    @property
    def error(self) -> StintError | None:
        """The error of the run, once it has failed. Its last event has it, too."""
        ...

    async def open(self, seconds: float, /) -> AsyncGenerator[E, None]:
        """Return the events for a stream, after the first one or after `seconds`.

        The iterator raises as `events`, or StreamClosed if the client is to reconnect.

        Raises:
            StintError: the run was refused, or could not start.
        """
        ...

    def events(self) -> AsyncGenerator[E, None]:
        """Yield the events from the first one that the caller lacks to the terminal one.

        Raises StintError if the run cannot start or is deleted, or if the deadline passes before a followed run ends.
        """
        ...

    async def wait_for_start(self, until: float, /) -> D | None:
        """Return None once the run has started. If it still waits at `until`, return the document of its message.

        `until` is a time of the event loop's clock. Raises StintError if the run cannot start.
        """
        ...

    async def outcome(self) -> D:
        """Return the document of the run when it has ended or waits for its client. Raises StintError as `events`."""
        ...

    async def finish(self) -> None:
        """Do what may be done after the answer was sent. Nothing is raised."""
        ...

    async def send_trace(self) -> None:
        """Send the trace of the run to its receivers, after everything else. Nothing is raised."""
        ...


class StreamClosed(Exception):
    """A stream ends before its run, without the marks of an end, so that its client reconnects."""


class FailableRun(Protocol):
    """A run that raises nothing. After a failure, `error` is set, and the last event has it, too."""

    @property
    def error(self) -> StintError | None: ...


async def open_events(
    events: AsyncGenerator[T, None], seconds: float, run: FailableRun | None = None
) -> AsyncGenerator[T, None]:
    """Return the events after the first one has arrived, or after `seconds`.

    Raises:
        StintError: the run failed before its first event, or with it.
    """

    async def read_first() -> T:
        return await anext(events)

    first = asyncio.create_task(read_first())
    done, _ = await asyncio.wait({first}, timeout=seconds)
    if run is not None and run.error is not None:
        await first
        async for _event in events:
            pass
        raise run.error
    if done:
        first.result()
    return chain(first, events)


async def chain(first: "asyncio.Task[T]", rest: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the event that is being read, and those after it."""
    async with aclosing(rest):
        yield await first
        async for event in rest:
            yield event


async def close_on(
    errors: type[StintError] | tuple[type[StintError], ...], events: AsyncGenerator[T, None]
) -> AsyncGenerator[T, None]:
    """Yield events, and raise StreamClosed in place of some errors."""
    try:
        async with aclosing(events):
            async for event in events:
                yield event
    except errors as error:
        logger.info("A stream was closed before its end", extra={"error_code": error.code})
        raise StreamClosed from error


class WaitingRun(Generic[E, D]):
    """The handle of a run that waits for its session or conversation, or that interrupts the run which has it.

    `start` returns the handle of the run once it has started, here or in another process, at the latest at a time of
    the event loop's clock. `read_message` returns the document of the message that waits; there is none for a run that
    interrupts.
    """

    def __init__(
        self,
        start: Callable[[float], Awaitable[RunHandle[E, D]]],
        read_message: Callable[[], Awaitable[D]] | None,
        deadline: float,
    ) -> None:
        self._start, self._read_message, self._deadline = start, read_message, deadline
        self._started: RunHandle[E, D] | None = None
        self._traced: RunHandle[E, D] | None = None

    @property
    def error(self) -> StintError | None:
        return None if self._started is None else self._started.error

    async def read_message(self) -> D | None:
        """Return the document of the message that waits; None for a run that interrupts."""
        return None if self._read_message is None else await self._read_message()

    async def open(self, seconds: float) -> AsyncGenerator[E, None]:
        return await open_events(read_in_one_task(self.events()), seconds)

    async def events(self) -> AsyncGenerator[E, None]:
        started = self._traced = await self._start(self._deadline)
        async with aclosing(started.events()) as events:
            async for event in events:
                yield event
        await started.finish()

    async def wait_for_start(self, until: float) -> D | None:
        try:
            self._started = await self._start(until)
        except DeadlineExceeded:
            if self._read_message is None:
                raise
            return await self._read_message()
        return None

    async def outcome(self) -> D:
        started = self._started = self._started or await self._start(self._deadline)
        return await started.outcome()

    async def finish(self) -> None:
        if self._started is not None:
            await self._started.finish()

    async def send_trace(self) -> None:
        # Not in `finish`, for which the end of a stream waits here.
        run = self._traced or self._started
        if run is not None:
            await run.send_trace()


class End:
    """The end of a queue."""


END: Final = End()


async def read_in_one_task(events: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield events that one task reads, so that the start of a run and all its events share a context."""
    queue: asyncio.Queue[T | End] = asyncio.Queue()

    async def fill() -> None:
        try:
            async with aclosing(events):
                async for event in events:
                    queue.put_nowait(event)
        finally:
            queue.put_nowait(END)

    reading = asyncio.create_task(fill())
    try:
        while not isinstance(event := await queue.get(), End):
            yield event
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
