"""The live stream of a session: the events of its turns, whoever runs them.

No process can be called, so a stream polls. It reads the session's record, half a read unit, every SHORT_PAUSE for
BUSY_SECONDS after it opened and after each event, and then every LONG_PAUSE. If the record has changed, it reads what
has happened:

    the record shows            the stream
    a turn that it lacks        replays the turn's log, and follows it until it ends or waits
    more of its last turn       likewise, without the events that it has sent
    new input                   takes the input and runs its turn, in the first part of its own time (`takes_until`),
                                after the turns that others have run meanwhile
    that it is deleted          ends

So a turn that a request starts right after the stream was opened runs in the process of the stream, as fast as if the
request itself had a stream. Without a stream that takes it, the worker runs it; see `services/turns/session_input.py`.

A stream that opens without a position begins after the last turn, or with the start of one that runs or waits.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Literal, NamedTuple

from stint.dataclasses import dataclass, field
from stint.domain.errors import DeadlineExceeded, NotFound, StoreUnavailable
from stint.domain.ids import hex_of, id_before
from stint.domain.llama_stack.events import Event, NumberedEvent, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import Turn
from stint.domain.run_outcome import RunStatus
from stint.openai_agents.schemas.sessions import AgentSessionObject, RequiredAction
from stint.openai_agents.schemas.stream_events import (
    AgentStreamEvent,
    SessionStateEvent,
    StateType,
    TurnEndedEvent,
    TurnProgressEvent,
)
from stint.openai_agents.session_reader import SessionReader, SessionView
from stint.openai_agents.stream_positions import HIGHEST, START, StreamPosition, unknown_position
from stint.openai_agents.turn_events import EndType, TurnEvents
from stint.openai_agents.turns import from_turn, required_actions
from stint.services.runs.run_handle import RunObserver
from stint.services.turns.detached_turn import DetachedTurn
from stint.services.turns.session_input import SessionInput
from stint.store.sessions import SessionSigns

logger = logging.getLogger(__name__)

SHORT_PAUSE, LONG_PAUSE = 0.25, 1.0
"""Seconds between two reads of the session's record."""

BUSY_SECONDS = 30.0
"""Seconds after the start and after each event in which the pauses are short."""

SLOWEST_POST = 60.0
"""Seconds after which a message that is stored now was sent at most: its id has the time of its request."""

RETRY_PAUSE = 5.0
"""Seconds between two attempts to take input that waits, while the session's record does not change."""

StreamedStatus = Literal["in_progress", "idle", "requires_action"]
STATES: dict[StreamedStatus, StateType] = {
    "in_progress": "agent.session.in_progress",
    "idle": "agent.session.idle",
    "requires_action": "agent.session.requires_action",
}


class PlacedEvent(NamedTuple):
    """An event with its position; None for one that is not part of a turn."""

    position: StreamPosition | None
    event: AgentStreamEvent


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
class TurnProgress:
    """The turn whose events the stream has sent last."""

    turn_id: str
    events: TurnEvents | None = None
    """The converter, if it has all events of the turn so far."""
    is_open: bool = True
    """Whether more events may follow: the turn runs, or waits for its client."""
    is_paused: bool = False


@dataclass(slots=True)
class SessionStream:
    """One stream of a session. `ends_when_idle`: it ends with the first turn that does.

    `is_left` returns whether the client has gone, where the server sees that. Lambda does not.
    """

    reader: SessionReader
    input: SessionInput
    view: SessionView
    times: StreamTimes
    is_left: Callable[[], Awaitable[bool]]
    observer: RunObserver | None = None
    ends_when_idle: bool = False
    position: StreamPosition = START
    current: TurnProgress = field(default_factory=lambda: TurnProgress("", is_open=False))
    busy_until: float = 0.0
    idle: bool = False
    waiting: set[str] = field(default_factory=set)
    """The messages that were in line when the stream looked last."""
    refused: set[str] = field(default_factory=set)
    """The messages without a turn whose events the stream has sent, or that had left the line before it began."""
    refused_after: str = ""
    """The id after which the stream looks for such messages."""
    next_try: float = 0.0
    """When the stream tries again to take messages that wait."""
    taken: list[DetachedTurn] = field(default_factory=list)
    """The turns that this process runs, or has run."""
    expects_turn: bool = False
    """Whether a turn has the session whose header is not stored yet."""

    async def begin(self, position: StreamPosition | None) -> None:
        """Set the position after which the stream begins.

        Raises:
            NotFound: the session was deleted.
            InvalidRequest: the position is not one of this session.
        """
        if position is None:
            self.refused_after = id_before(SLOWEST_POST)
            # Before the response begins: whatever is refused later is shown.
            self.refused = await self.input.list_refused(self.refused_after)
            last = await self.reader.read_last(self.view)
            if last is not None:
                ended = last.status not in (RunStatus.in_progress, RunStatus.awaiting_input)
                self.position = StreamPosition(last.header.turn_id, HIGHEST if ended else -1, 0)
                self.current = TurnProgress(last.header.turn_id, is_open=not ended)
            return
        self.refused_after = self.view.session_id
        if position != START:
            try:
                await self.input.requests.tail.read(*self.input.ids[1:], position.turn_id)
            except NotFound:
                position = await self.find_turn_before(position.turn_id)
            self.position, self.current = position, TurnProgress(position.turn_id, is_open=position != START)
            self.refused_after = position.turn_id or self.view.session_id

    async def find_turn_before(self, message_id: str) -> StreamPosition:
        """Return the start of the turn before a message that never got one: its events have no place among turns.

        Raises InvalidRequest if there is no such message.
        """
        if await self.input.find_refused(message_id) is None:
            raise unknown_position()
        turns, _ = await self.reader.store.turns.page(*self.input.ids, after=message_id, limit=1)
        return StreamPosition(turns[0].header.turn_id, -1, 0) if turns else START

    async def events(self) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the session until the stream ends. Closing this stops no turn. Nothing is raised."""
        clock = asyncio.get_running_loop().time
        seen: SessionSigns | None = None
        self.busy_until = clock() + BUSY_SECONDS
        try:
            while clock() < self.times.ends_at and not (self.idle and self.ends_when_idle):
                try:
                    signs = await self.input.peek()
                    if signs != seen or self.expects_turn or (self.waiting and clock() >= self.next_try):
                        seen, sent, self.next_try = signs, self.busy_until, clock() + RETRY_PAUSE
                        async with aclosing(self.read_news(signs)) as news:
                            async for event in news:
                                self.busy_until = clock() + BUSY_SECONDS
                                yield event
                        if self.busy_until != sent:
                            continue  # a turn took its time: the signs are old
                    elif self.waiting and self.waiting - await self.input.list_messages():
                        for event in await self.read_refused():
                            yield event
                except StoreUnavailable as error:
                    seen = None
                    logger.warning("A stream could not read its session; trying again", extra={"error": error.message})
                if await self.is_left():
                    return
                await asyncio.sleep(SHORT_PAUSE if clock() < self.busy_until else LONG_PAUSE)
        except (NotFound, DeadlineExceeded) as error:  # the session was deleted, or the time is over
            logger.info("A stream ends", extra={"error_code": error.code})
        finally:
            # Lambda freezes the process when its response has ended.
            for taken in self.taken:
                await taken.wait()

    async def read_news(self, signs: SessionSigns) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events since the last one: of turns that others run, and of input that this process takes."""
        async with aclosing(self.read_turns(signs)) as turns:
            async for event in turns:
                yield event
        self.expects_turn = (signs.lease_turn or "") > self.position.turn_id  # its header is not stored yet
        self.waiting |= await self.input.list_messages()
        while asyncio.get_running_loop().time() < self.times.takes_until:
            taken = await self.input.take(self.times.deadline, self.observer)
            if taken is None:
                break
            async with aclosing(self.run_taken(taken)) as events:
                async for event in events:
                    yield event
            if self.idle and self.ends_when_idle:
                return
        for event in await self.read_refused():
            yield event

    async def read_refused(self) -> list[PlacedEvent]:
        """Return the events of messages that have left the line without a turn: cancelled ones, and failed ones.

        Another process may have taken such a message, and refused it, between two looks at the line.
        """
        gone, self.waiting = self.waiting, await self.input.list_messages()
        gone = (gone - self.waiting) | await self.input.list_refused(self.refused_after)
        refused = [await self.input.find_refused(message_id) for message_id in sorted(gone - self.refused)]
        turns = [turn for turn in refused if turn is not None]
        self.refused.update(turn.turn_id for turn in turns)
        return [event for turn in turns for event in await self.show_refused(turn)]

    async def show_refused(self, turn: Turn) -> list[PlacedEvent]:
        """Return the events of a turn that never started. A stream that begins after them does not have them."""
        shown = from_turn(turn, self.input.agent_id)
        kind: EndType = "agent.session.turn.failed" if shown.status == "failed" else "agent.session.turn.cancelled"
        names = {"session_id": turn.session_id, "turn_id": turn.turn_id}
        events: list[AgentStreamEvent] = [
            TurnProgressEvent(type="agent.session.turn.created", turn=shown, **names),
            TurnEndedEvent(type=kind, turn=shown, usage=None, **names),
        ]
        if not self.current.is_open:
            self.idle = True
            events.append(await self.show_state("idle", turn))
        # Without a position: there is no such turn to read again, and events of turns before it may follow.
        ids = [StreamPosition(turn.turn_id, 0, place).event_id for place in range(len(events))]
        return [
            PlacedEvent(None, event.model_copy(update={"event_id": each}))
            for each, event in zip(ids, events, strict=True)
        ]

    async def run_taken(self, taken: DetachedTurn) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of a turn that this process runs, after those of turns that others have run meanwhile."""
        self.taken.append(taken)
        async with aclosing(self.read_later(until=taken.turn.header.turn_id)) as missed:
            async for event in missed:
                yield event
        async with aclosing(self.convert(taken.turn, taken.events())) as events:
            async for event in events:
                yield event

    async def read_turns(self, signs: SessionSigns) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the current turn that the stream lacks, and those of the turns after it."""
        if self.current.is_open:
            turn = await self.input.requests.tail.read(*self.input.ids[1:], self.current.turn_id)
            async with aclosing(self.follow(turn)) as events:
                async for event in events:
                    yield event
        if self.has_later(signs):
            async with aclosing(self.read_later()) as later:
                async for event in later:
                    yield event

    async def read_later(self, until: str | None = None) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the turns after the current one, with `until` those before that turn."""
        ids, more = self.input.ids, until is None or until > self.position.turn_id
        while more:
            turns, more = await self.reader.store.turns.page(
                *ids, after=self.position.turn_id or None, newest_first=False
            )
            for turn in turns:
                if until is not None and turn.header.turn_id >= until:
                    return
                async with aclosing(self.follow(turn)) as events:
                    async for event in events:
                        yield event

    def has_later(self, signs: SessionSigns) -> bool:
        """Return whether there may be turns after the current one."""
        last = signs.last.turn_id if signs.last is not None else ""
        return max(last, signs.lease_turn or "") > self.position.turn_id

    async def follow(self, turn: StoredTurn) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of a turn that the stream lacks, until it ends or waits. Raises as `TurnTail.follow`."""
        tail = self.input.requests.tail
        if not turn.ending:
            turn = await tail.read(*self.input.ids[1:], turn.header.turn_id)
        self.current = TurnProgress(turn.header.turn_id)
        events = await tail.follow_stored(turn, self.input.agent_id, -1, self.times.ends_at)
        async with aclosing(self.convert(turn, events)) as converted:
            async for event in converted:
                yield event

    async def convert(
        self, turn: StoredTurn, events: AsyncIterator[NumberedEvent]
    ) -> AsyncGenerator[PlacedEvent, None]:
        """Yield what the events of a turn become, without those that the stream has sent."""
        turn_id = turn.header.turn_id
        if self.current.turn_id != turn_id or self.current.events is None:
            converter = TurnEvents(turn.header, self.input.agent_id, self.view.labels_of(turn))
            self.current = TurnProgress(turn_id, converter)
        async for numbered in events:
            for place, event in enumerate(await self.convert_event(turn, numbered.event)):
                position = StreamPosition(turn_id, numbered.number, place)
                if position > self.position:
                    self.position = position
                    yield place_event(position, event)

    async def convert_event(self, turn: StoredTurn, event: Event) -> list[AgentStreamEvent]:
        """Return the events of the turn, and those of the session, that an event becomes."""
        current, self.idle = self.current, False
        resumes, current.is_paused = current.is_paused, isinstance(event, TurnAwaitingInput)
        shown: list[AgentStreamEvent] = [*current.events.convert(event)] if current.events is not None else []
        if isinstance(event, TurnComplete | TurnFailed):
            current.is_open, self.idle = False, True
            return [*shown, await self.show_state("idle", event.turn)]
        if isinstance(event, TurnAwaitingInput):
            actions = required_actions(event.turn, self.view.labels_of(turn), event.turn.pending_approvals or ())
            return [*shown, await self.show_state("requires_action", event.turn, actions)]
        if isinstance(event, TurnStart):
            return [await self.show_state("in_progress", None), *shown]
        return [*shown, await self.show_state("in_progress", None)] if resumes else shown

    async def show_state(
        self, status: StreamedStatus, turn: Turn | None, actions: list[RequiredAction] | None = None
    ) -> SessionStateEvent:
        """Return the event of a change of the session's state. At the end of a turn, the session is read again."""
        if turn is not None:
            self.view = await self.reader.refresh(self.view)
        return SessionStateEvent(type=STATES[status], session=self.view.show(status, turn, actions))


def place_event(position: StreamPosition, event: AgentStreamEvent) -> PlacedEvent:
    return PlacedEvent(position, event.model_copy(update={"event_id": position.event_id}))


def show_created(session: AgentSessionObject) -> PlacedEvent:
    """Return the first event of the stream of a new session."""
    event_id = f"evt_{hex_of(session.id)}"
    return PlacedEvent(None, SessionStateEvent(type="agent.session.created", session=session, event_id=event_id))
