"""The live stream of a session: the events of its turns, whoever runs them.

No process can be called, so a stream polls. It reads the session's record, half a read unit, every SHORT_PAUSE for
BUSY_SECONDS after it opened and after each event, and then every LONG_PAUSE. What it does next depends on the session:

    the session                     the stream reads in each pause    and goes on when
    has nothing to do, or its       the record                        the record has changed
    turn waits for its client
    has the lease of a turn whose   the record, and the turns         the turn is there
    header is not stored yet
    has messages in line            the record, and the line          the record has changed, a message has left the
                                                                      line, or RETRY_PAUSE has passed
    runs a turn of another          the turn's log (`RunTail`)        the turn ends or waits
    process
    runs a turn of this process     nothing: it gets the events       the turn ends or waits

Going on means, in this order: the events of turns of others that it lacks; then input is taken and its turn is run, in
the first part of the stream's time (`takes_until`); then the events of messages that have left the line without a turn.

The stream ends when its time is over, unless this process runs a turn; when the session is deleted; when its client has
left; and with `ends_when_idle` after the first turn that ends. Then it waits for the turns that this process runs.

So a turn that a request starts right after the stream was opened runs in the process of the stream, as fast as if the
request itself had a stream. Without a stream that takes it, the worker runs it; see `services/turns/session_input.py`.

A stream that opens without a position begins after the last turn, or with the start of one that runs or waits.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from stint.dataclasses import dataclass, field
from stint.domain.errors import DeadlineExceeded, NotFound, StoreUnavailable
from stint.openai_agents.session_reader import SessionReader, SessionView
from stint.openai_agents.stream_positions import START, StreamPosition, unknown_position
from stint.openai_agents.streamed_turns import PlacedEvent, StreamedTurns
from stint.openai_agents.unstarted_messages import UnstartedMessages
from stint.services.runs.run_handle import RunObserver
from stint.services.turns.detached_turn import DetachedTurn
from stint.services.turns.session_input import SessionInput
from stint.store.sessions import SessionActivity

logger = logging.getLogger(__name__)

SHORT_PAUSE, LONG_PAUSE = 0.25, 1.0
"""Seconds between two reads of the session's record."""

BUSY_SECONDS = 30.0
"""Seconds after the start and after each event in which the pauses are short."""

RETRY_PAUSE = 5.0
"""Seconds between two attempts to take input that waits, while the session's record does not change."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """The times of the event loop's clock that bound a stream."""

    deadline: float
    """When the last event of a turn that this process runs must be sent."""
    ends_at: float
    """When the stream ends, unless this process runs a turn."""
    takes_until: float
    """Until when the stream takes input."""


@dataclass(slots=True)
class SessionStream:
    """One stream of a session. `ends_when_idle`: it ends with the first turn that does.

    `is_left` returns whether the client has gone, where the server sees that. Lambda does not.
    """

    input: SessionInput
    turns: StreamedTurns
    messages: UnstartedMessages
    times: StreamTimes
    is_left: Callable[[], Awaitable[bool]]
    observer: RunObserver | None = None
    ends_when_idle: bool = False
    seen: SessionActivity | None = None
    """What the session's record had when the stream went on last; None if it is to go on in any case."""
    next_try: float = 0.0
    """When the stream tries again to take messages that wait."""
    awaits_header: bool = False
    """Whether a turn has the session whose header is not stored yet."""
    taken: list[DetachedTurn] = field(default_factory=list)
    """The turns that this process runs, or has run."""

    async def events(self) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the session until the stream ends. Closing this stops no turn. Nothing is raised."""
        clock = asyncio.get_running_loop().time
        busy_until = clock() + BUSY_SECONDS
        try:
            while clock() < self.times.ends_at and not self.is_finished:
                has_events = False
                try:
                    async with aclosing(self.read_new()) as found:
                        async for event in found:
                            has_events, busy_until = True, clock() + BUSY_SECONDS
                            yield event
                except StoreUnavailable as error:
                    self.seen = None
                    logger.warning("A stream could not read its session; trying again", extra={"error": error.message})
                if has_events:
                    continue  # they took their time: what was read of the session is old
                if await self.is_left():
                    return
                await asyncio.sleep(SHORT_PAUSE if clock() < busy_until else LONG_PAUSE)
        except (NotFound, DeadlineExceeded) as error:  # the session was deleted, or the time is over
            logger.info("A stream ends", extra={"error_code": error.code})
        finally:
            # Lambda freezes the process when its response has ended.
            for taken in self.taken:
                await taken.wait()

    @property
    def is_finished(self) -> bool:
        return self.ends_when_idle and self.turns.is_idle

    async def read_new(self) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events since the last one, if there may be some."""
        clock, activity = asyncio.get_running_loop().time, await self.input.read_activity()
        retries = bool(self.messages.in_line) and clock() >= self.next_try
        if activity != self.seen or self.awaits_header or retries:
            self.seen, self.next_try = activity, clock() + RETRY_PAUSE
            async with aclosing(self.go_on(activity)) as found:
                async for event in found:
                    yield event
        elif await self.messages.has_lost_one():
            for event in await self.show_unstarted():
                yield event

    async def go_on(self, activity: SessionActivity) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of turns that others run, of input that this process takes, and of unstarted messages."""
        async with aclosing(self.turns.read_new(activity.newest_turn)) as turns:
            async for event in turns:
                yield event
        self.awaits_header = (activity.lease_turn or "") > self.turns.position.turn_id
        await self.messages.look()
        while asyncio.get_running_loop().time() < self.times.takes_until:
            taken = await self.input.take(self.times.deadline, self.observer)
            if taken is None:
                break
            self.taken.append(taken)
            async with aclosing(self.turns.run_taken(taken)) as events:
                async for event in events:
                    yield event
            if self.is_finished:
                return
        for event in await self.show_unstarted():
            yield event

    async def show_unstarted(self) -> list[PlacedEvent]:
        """Return the events of messages that have left the line without a turn."""
        return [event for turn in await self.messages.find_new() for event in await self.turns.show_unstarted(turn)]

    async def begin(self, position: StreamPosition | None) -> None:
        """Set the position after which the stream begins.

        Raises:
            NotFound: the session was deleted.
            InvalidRequest: the position is not one of this session.
        """
        if position is None:
            # Before the response begins: whatever leaves the line later is shown.
            await self.messages.skip_known()
            await self.turns.skip_ended()
            return
        if position != START:
            try:
                await self.turns.read_turn(position.turn_id)
            except NotFound:
                position = await self.find_turn_before(position.turn_id)
        self.turns.skip_to(position)
        self.messages.after = position.turn_id or self.input.session_id

    async def find_turn_before(self, message_id: str) -> StreamPosition:
        """Return the start of the turn before a message that never got one: its events have no place among turns.

        Raises InvalidRequest if there is no such message.
        """
        if await self.input.find_unstarted(message_id) is None:
            raise unknown_position()
        turns, _ = await self.turns.reader.store.turns.page(*self.input.ids, after=message_id, limit=1)
        return StreamPosition(turns[0].header.turn_id, -1, 0) if turns else START


async def open_session_stream(
    reader: SessionReader,
    view: SessionView,
    times: StreamTimes,
    position: StreamPosition | None,
    is_left: Callable[[], Awaitable[bool]],
    observer: RunObserver | None = None,
    *,
    ends_when_idle: bool = False,
) -> SessionStream:
    """Return a stream of a session after a position, as `SessionStream.begin`."""
    turns, session = StreamedTurns(reader, view, times.ends_at), reader.input_of(view)
    messages = UnstartedMessages(session)
    stream = SessionStream(session, turns, messages, times, is_left, observer, ends_when_idle=ends_when_idle)
    await stream.begin(position)
    return stream
