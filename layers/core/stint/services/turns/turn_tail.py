"""The events of a turn for readers that rejoin its stream: those of its log, followed by new ones."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import Interrupted, InvalidRequest
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted, runs
from stint.services.runs.partial_reader import PartialReader
from stint.services.runs.polling_pauses import PollingPauses
from stint.services.turns.turn_replay import TurnReplay
from stint.store.keys import turn_partials
from stint.store.parallel import value_of
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
        partials = PartialReader(self.store.partial_steps, turn_partials(self.tenant, *ids))
        tailed = TailedTurn(self, agent_id, TurnReplay(turn.header), partials)
        events = await tailed.replay_log(turn)
        if after >= tailed.replay.count and turn.status is not RunStatus.in_progress and not was_interrupted(turn):
            raise InvalidRequest(
                f"The stream of turn {turn_id} has {tailed.replay.count} events, numbered from 0. Event {after} does "
                "not exist. Set starting_after, or Last-Event-ID, to the number of an existing event.",
                param="starting_after",
            )
        return tailed.events_after(after, events, deadline)

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

    async def check_process(self, turn: StoredTurn, agent_id: str) -> StoredTurn:
        """Return a quiet turn, with an ending if its process died."""
        session_id = turn.header.session_id
        record = await self.store.sessions.get(self.tenant, agent_id, session_id)
        if runs(record, turn.header.turn_id):
            return turn
        copy = StoredTurn(turn.header, [*turn.records], turn.size)
        return await mark_interrupted(self.store, self.tenant, agent_id, record, copy)


@dataclass(slots=True)
class TailedTurn:
    """A turn that one reader follows."""

    tail: TurnTail
    agent_id: str
    replay: TurnReplay
    partials: PartialReader

    async def replay_log(self, turn: StoredTurn) -> list[NumberedEvent]:
        """Return the events of a stored turn. What is known of an interrupted step comes before its failure."""
        replay = self.replay
        events = [*replay.emit_start()]
        if was_interrupted(turn):
            events += replay.emit_records(turn.records[:-1])
            events += await self.read_partial()
        return [*events, *replay.emit_records(turn.records[len(replay.turn.records) :])]

    async def read_partial(self) -> Iterator[NumberedEvent]:
        """Return the events of the unfinished step that were not yielded yet."""
        return self.replay.emit_partial(await self.partials.read(self.replay.last_step))

    async def events_after(
        self, after: int, events: list[NumberedEvent], deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events after a number. The last event of a turn that was interrupted may have a lower one."""
        async for event in self.all_events(events, deadline):
            last = event.number == self.replay.count - 1 and was_interrupted(self.replay.turn)
            if event.number > after or (event.number < after and last):
                yield event

    async def all_events(self, events: list[NumberedEvent], deadline: float) -> AsyncGenerator[NumberedEvent, None]:
        """Yield events, and those of new records and of parts of the next step while the turn runs."""
        for event in events:
            yield event
        pauses, clock = PollingPauses(deadline), asyncio.get_running_loop().time
        seen_at = clock()
        while self.replay.turn.status is RunStatus.in_progress:
            for event in await self.read_partial():
                pauses.reset()
                yield event
            await pauses.wait()
            records = await self.read_records(quiet=clock() - seen_at >= QUIET_SECONDS)
            if records or clock() - seen_at >= QUIET_SECONDS:
                seen_at = clock()
            if records:
                pauses.reset()
            for event in self.replay.emit_records(records):
                yield event

    async def read_records(self, *, quiet: bool) -> Sequence[TurnRecord]:
        """Return new records. If a `quiet` turn has none, check its process."""
        turn, tail = self.replay.turn, self.tail
        ids = tail.tenant, self.agent_id, turn.header.session_id
        records = await tail.store.turns.read_rest(*ids, turn.header.turn_id, len(turn.records))
        if quiet and not records:
            return (await tail.check_process(turn, self.agent_id)).records[len(turn.records) :]
        return records


def was_interrupted(turn: StoredTurn) -> bool:
    """Return whether a turn's process died, so that its stream may have had events that were not stored."""
    error = turn.ending.error if turn.ending else None
    return error is not None and error.code == Interrupted.code
