"""The events of a turn for readers that rejoin its stream: those of its log, followed by new ones."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.llama_stack.events import NumberedEvent
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted, runs
from stint.services.runs.run_tail import PartialReader, RunTail
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
        """Return the events after a number as `RunTail.follow`. Several readers may follow a turn at once.

        Raises:
            NotFound: there is no such agent, session or turn.
            InvalidRequest: the turn has ended, and has no event with that number.
        """
        return await self.follow_stored(await self.read(agent_id, session_id, turn_id), agent_id, after, deadline)

    async def follow_stored(
        self, turn: StoredTurn, agent_id: str, after: int, deadline: float
    ) -> AsyncGenerator[NumberedEvent, None]:
        """Return the events after a number of a turn that `read` has returned. Raises as `follow`."""
        session_id, turn_id = turn.header.session_id, turn.header.turn_id
        ids = self.tenant, agent_id, session_id, turn_id  # an imported turn is also found by its old id
        replay, partials = TurnReplay(turn.header), PartialReader(self.store.partial_steps, turn_partials(*ids))
        check_process = partial(self.check_process, replay.stored, agent_id)
        tailed = RunTail(
            replay, partials, partial(self.store.turns.read_rest, *ids), check_process, quiet_seconds=QUIET_SECONDS
        )
        beyond = (
            f"The stream of turn {turn_id} has {{}} events, numbered from 0. Event {after} does not exist. Set "
            "starting_after, or Last-Event-ID, to the number of an existing event."
        )
        return await tailed.follow(turn, after, deadline, beyond)

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
        return await mark_interrupted(self.store, self.tenant, agent_id, record, turn=value_of(turn))

    async def check_process(self, turn: StoredTurn, agent_id: str) -> Sequence[TurnRecord]:
        """Return the records of a quiet turn, with an ending if its process died. Raises NotFound."""
        record = await self.store.sessions.get(self.tenant, agent_id, turn.header.session_id)
        if runs(record, turn.header.turn_id):  # the session is small, and the turn may not be
            return turn.records
        copy = StoredTurn(turn.header, [*turn.records], turn.size)
        return (await mark_interrupted(self.store, self.tenant, agent_id, record, turn=copy)).records
