"""The events of a turn for readers that rejoin its stream: those of its log, followed by new ones."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from stint.domain.errors import Interrupted, InvalidRequest
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.run_outcome import RunStatus
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted, runs
from stint.services.concurrency import value_of
from stint.services.polling_pauses import PollingPauses
from stint.services.turns.turn_replay import NumberedEvent, TurnReplay
from stint.store.store import Store

QUIET_SECONDS = 2.0
"""Seconds without a new record before the session's lease is checked."""


@dataclass(frozen=True, slots=True)
class TurnTail:
    """Replays the events of a tenant's turns, then tails new ones."""

    tenant: str
    store: Store
    agents: Agents

    async def follow(
        self, agent_id: str, session_id: str, turn_id: str, after: int, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Return the events after a number, -1 for all, up to the last one. Several readers may follow a turn at once.

        The iterator ends when the turn has ended or waits for its client. `deadline` is a time of the event loop's
        clock, after which the iterator raises DeadlineExceeded. It raises NotFound if the turn is deleted.

        Raises:
            NotFound: there is no such agent, session or turn.
            InvalidRequest: the turn has ended, and has no event with that number.
        """
        ids = agent_id, session_id, turn_id
        turn = await self.read(*ids)
        replay = TurnReplay(turn.header)
        events = [*replay.emit_start(), *replay.emit_records(turn.records)]
        if after >= replay.count and turn.status is not RunStatus.in_progress and not was_interrupted(turn):
            raise InvalidRequest(
                f"The stream of turn {turn_id} has {replay.count} events, numbered from 0. Event {after} does not "
                "exist. Set starting_after, or Last-Event-ID, to the number of an existing event.",
                param="starting_after",
            )
        return self.events_after(after, replay, events, deadline, agent_id)

    async def read(self, agent_id: str, session_id: str, turn_id: str) -> StoredTurn:
        """Read a turn. One whose process died is failed. Raises NotFound."""
        agent, session, turn = await asyncio.gather(
            self.agents.require(agent_id),
            self.store.sessions.get(self.tenant, agent_id, session_id),
            self.store.turns.get(self.tenant, agent_id, session_id, turn_id),
            return_exceptions=True,
        )
        value_of(agent)
        record = value_of(session)
        return await mark_interrupted(self.store, self.tenant, agent_id, record, value_of(turn))

    async def events_after(
        self, after: int, replay: TurnReplay, events: list[NumberedEvent], deadline: float, agent_id: str
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events after a number. The last event of a turn that was interrupted has a lower one."""
        async for event in self.all_events(replay, events, deadline, agent_id):
            if event.number > after or (event.number < after and is_last(replay, event)):
                yield event

    async def all_events(
        self, replay: TurnReplay, events: list[NumberedEvent], deadline: float, agent_id: str
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield events, and those of new records while the turn runs."""
        for event in events:
            yield event
        clock = asyncio.get_running_loop().time
        pauses, seen_at = PollingPauses(deadline), clock()
        while replay.turn.status is RunStatus.in_progress:
            await pauses.wait()
            turn = replay.turn
            ids = self.tenant, agent_id, turn.header.session_id
            records = await self.store.turns.read_rest(*ids, turn.header.turn_id, len(turn.records))
            if not records and clock() - seen_at >= QUIET_SECONDS:
                records = (await self.check_process(turn, agent_id)).records[len(turn.records) :]
                seen_at = clock()
            if records:
                pauses.reset()
                seen_at = clock()
            for event in replay.emit_records(records):
                yield event

    async def check_process(self, turn: StoredTurn, agent_id: str) -> StoredTurn:
        """Return a quiet turn, with an ending if its process died."""
        session_id = turn.header.session_id
        record = await self.store.sessions.get(self.tenant, agent_id, session_id)
        if runs(record, turn.header.turn_id):
            return turn
        copy = StoredTurn(turn.header, [*turn.records], turn.size)
        return await mark_interrupted(self.store, self.tenant, agent_id, record, copy)


def was_interrupted(turn: StoredTurn) -> bool:
    """Return whether a turn's process died, so that its stream may have had events that were not stored."""
    error = turn.ending.error if turn.ending else None
    return error is not None and error.code == Interrupted.code


def is_last(replay: TurnReplay, event: NumberedEvent) -> bool:
    """Return whether an event ends the stream of an interrupted turn."""
    return event.number == replay.count - 1 and was_interrupted(replay.turn)
