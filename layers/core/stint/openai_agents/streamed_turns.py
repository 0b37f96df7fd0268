"""The turns of a session as the events of one stream: each event once, in the order of the turns.

A turn's events come from its log, if another process runs it, or from this process. Both number them alike, so the
position of the last event tells what is left. What each event becomes depends on those before it, so a turn is always
converted from its first event on, and what the client has is dropped.

Between the last read of the stream and the moment when its own process takes input, others may have gone on:

    this process                            others may meanwhile have      the stream shows first
    starts a turn with a message            ended the current turn         the rest of the current turn
                                            run turns                      the turns between the two
    resumes a turn that waits for results   resumed it, and paused again   what its log has before the first event
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Literal, NamedTuple

from stint.dataclasses import dataclass, field
from stint.domain.ids import hex_of
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
from stint.openai_agents.session_reader import SessionReader, SessionView, active_time
from stint.openai_agents.stream_positions import HIGHEST, START, StreamPosition
from stint.openai_agents.turn_events import EndType, TurnEvents
from stint.openai_agents.turns import from_turn, required_actions
from stint.services.turns.detached_turn import DetachedTurn

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


@dataclass(slots=True)
class TurnProgress:
    """The turn whose events the stream has sent last."""

    turn_id: str
    converter: TurnEvents | None = None
    """What has converted all events of the turn so far; None before the turn is read."""
    next_number: int = 0
    """The number of the event that the converter gets next."""
    is_open: bool = True
    """Whether more events may follow: the turn runs, or waits for its client."""
    is_paused: bool = False
    """Whether it waits for its client."""


@dataclass(slots=True)
class StreamedTurns:
    """The turns of a session after a position. `ends_at` is the time of the event loop's clock until which they are
    followed.
    """

    reader: SessionReader
    view: SessionView
    ends_at: float
    position: StreamPosition = START
    """That of the last event."""
    current: TurnProgress = field(default_factory=lambda: TurnProgress("", is_open=False))
    is_idle: bool = False
    """Whether the last event was the end of a turn."""

    async def skip_ended(self) -> None:
        """Begin after the last turn, or with the start of one that runs or waits. Raises NotFound."""
        last = await self.reader.read_last(self.view)
        if last is not None:
            ended = last.status not in (RunStatus.in_progress, RunStatus.awaiting_input)
            self.position = StreamPosition(last.header.turn_id, HIGHEST if ended else -1, 0)
            self.current = TurnProgress(last.header.turn_id, is_open=not ended)

    def skip_to(self, position: StreamPosition) -> None:
        """Begin after an event."""
        self.position, self.current = position, TurnProgress(position.turn_id, is_open=position != START)

    async def read_new(self, newest: str) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the current turn that the stream lacks, and those of the turns up to the newest one."""
        if self.current.is_open:
            async with aclosing(self.follow(await self.read_turn(self.current.turn_id))) as events:
                async for event in events:
                    yield event
        if newest > self.position.turn_id:
            async with aclosing(self.read_later()) as later:
                async for event in later:
                    yield event

    async def read_later(self, until: str | None = None) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of the turns after the current one, with `until` those before that turn."""
        ids, more = (self.reader.tenant, *self.ids), until is None or until > self.position.turn_id
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

    async def run_taken(self, taken: DetachedTurn) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of a turn that this process runs, after what others have done since the last read."""
        turn, current = taken.turn, self.current
        if current.is_open and current.turn_id != turn.header.turn_id:
            async with aclosing(self.follow(await self.read_turn(current.turn_id))) as rest:
                async for event in rest:
                    yield event
        async with aclosing(self.read_later(until=turn.header.turn_id)) as missed:
            async for event in missed:
                yield event
        async with aclosing(self.convert(turn, self.with_logged(turn, taken.events()))) as events:
            async for event in events:
                yield event

    async def with_logged(
        self, turn: StoredTurn, events: AsyncGenerator[NumberedEvent, None]
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of a turn since it was started or resumed, after those in its log that the stream lacks."""
        is_current = self.current.turn_id == turn.header.turn_id
        expected = self.current.next_number if is_current else 0
        async with aclosing(events):
            async for numbered in events:
                if numbered.number > expected:
                    from stint.services.turns.turn_replay import replay_turn  # noqa: PLC0415 - few streams lack events

                    for logged in replay_turn(turn):
                        if expected <= logged.number < numbered.number:
                            yield logged
                expected = numbered.number + 1
                yield numbered

    async def follow(self, turn: StoredTurn) -> AsyncGenerator[PlacedEvent, None]:
        """Yield the events of a turn that the stream lacks, until it ends or waits. Raises as `TurnTail.follow`."""
        if not turn.ending:
            turn = await self.read_turn(turn.header.turn_id)
        self.current = TurnProgress(turn.header.turn_id)
        events = await self.reader.requests.tail.follow_stored(turn, self.view.agent_id, -1, self.ends_at)
        async with aclosing(self.convert(turn, events)) as converted:
            async for event in converted:
                yield event

    async def read_turn(self, turn_id: str) -> StoredTurn:
        """Read a turn. One whose process died is failed. Raises NotFound."""
        return await self.reader.requests.tail.read(*self.ids, turn_id)

    async def convert(
        self, turn: StoredTurn, events: AsyncIterator[NumberedEvent]
    ) -> AsyncGenerator[PlacedEvent, None]:
        """Yield what the events of a turn become, without those that the stream has sent."""
        turn_id = turn.header.turn_id
        if self.current.turn_id != turn_id or self.current.converter is None:
            converter = TurnEvents(turn.header, self.view.agent_id, self.view.labels_of(turn))
            self.current = TurnProgress(turn_id, converter)
        async for numbered in events:
            self.current.next_number = numbered.number + 1
            for place, event in enumerate(await self.convert_event(turn, numbered.event)):
                position = StreamPosition(turn_id, numbered.number, place)
                if position > self.position:
                    self.position = position
                    yield place_event(position, event)

    async def convert_event(self, turn: StoredTurn, event: Event) -> list[AgentStreamEvent]:
        """Return the events of the turn, and those of the session, that an event becomes."""
        current, self.is_idle = self.current, False
        resumes, current.is_paused = current.is_paused, isinstance(event, TurnAwaitingInput)
        shown: list[AgentStreamEvent] = [*current.converter.convert(event)] if current.converter is not None else []
        if isinstance(event, TurnComplete | TurnFailed):
            current.is_open, self.is_idle = False, True
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
        """Return the event of a change of the session's state, by its last turn if that has ended or waits.

        The session is read again then, unless it was read after a later turn: so a replay of many turns reads it once.
        """
        last = self.view.record.last
        if turn is not None and (last is None or last.turn_id <= turn.turn_id):
            self.view = await self.reader.refresh(self.view)
        last_active = active_time(turn) if turn is not None else None
        return SessionStateEvent(type=STATES[status], session=self.view.show(status, last_active, actions))

    async def show_unstarted(self, turn: Turn) -> list[PlacedEvent]:
        """Return the events of a message without a turn. A stream that begins after them does not have them."""
        shown = from_turn(turn, self.view.agent_id)
        kind: EndType = "agent.session.turn.failed" if shown.status == "failed" else "agent.session.turn.cancelled"
        names = {"session_id": turn.session_id, "turn_id": turn.turn_id}
        events: list[AgentStreamEvent] = [
            TurnProgressEvent(type="agent.session.turn.created", turn=shown, **names),
            TurnEndedEvent(type=kind, turn=shown, usage=None, **names),
        ]
        if not self.current.is_open:
            self.is_idle = True
            events.append(await self.show_state("idle", turn))
        # Without a position: there is no such turn to read again, and events of turns before it may follow.
        ids = [StreamPosition(turn.turn_id, 0, place).event_id for place in range(len(events))]
        return [
            PlacedEvent(None, event.model_copy(update={"event_id": each}))
            for each, event in zip(ids, events, strict=True)
        ]

    @property
    def ids(self) -> tuple[str, str]:
        return self.view.agent_id, self.view.session_id


def place_event(position: StreamPosition, event: AgentStreamEvent) -> PlacedEvent:
    return PlacedEvent(position, event.model_copy(update={"event_id": position.event_id}))


def show_created(session: AgentSessionObject) -> PlacedEvent:
    """Return the first event of the stream of a new session."""
    event_id = f"evt_{hex_of(session.id)}"
    return PlacedEvent(None, SessionStateEvent(type="agent.session.created", session=session, event_id=event_id))
