"""Traces of turns, as callers read them.

A trace is made from the stored steps each time that it is read, so nothing is stored for it. It has what the caller may
read as the turn.
"""

import asyncio

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.traces import TraceDocument
from stint.services.agents.interrupted import mark_interrupted
from stint.services.traces.trace_form import make_shown_form
from stint.services.traces.turn_spans import has_ended, make_trace
from stint.services.turns.turns import Turns
from stint.store.parallel import value_of


@dataclass(frozen=True, slots=True)
class TurnTraces:
    """The traces of a tenant's turns. `service` is the name of the service in them."""

    turns: Turns
    service: str

    async def read(self, agent_id: str, session_id: str, turn_id: str) -> TraceDocument:
        """Return the trace of a turn.

        Raises:
            NotFound: there is no such agent, session or turn.
            Conflict: the turn has not ended.
        """
        turns, tenant = self.turns, self.turns.tenant
        found, session, stored = await asyncio.gather(
            turns.agents.config(agent_id),
            turns.store.sessions.get(tenant, agent_id, session_id),
            self.find_turn(agent_id, session_id, turn_id),
            return_exceptions=True,
        )
        config, record = value_of(found), value_of(session)
        turn = await mark_interrupted(turns.store, tenant, agent_id, record, turn=value_of(stored))
        if not has_ended(turn):
            raise not_ended(turn)
        return await asyncio.to_thread(make_trace, turn, agent_id, config, make_shown_form(self.service))

    async def find_turn(self, agent_id: str, session_id: str, turn_id: str) -> StoredTurn:
        """Return a turn, or the one that has a message with the id. Raises NotFound."""
        read = self.turns.store.turns.get
        try:
            return await read(self.turns.tenant, agent_id, session_id, turn_id)
        except NotFound:
            owner = (await self.turns.get(agent_id, session_id, turn_id)).turn_id
            return await read(self.turns.tenant, agent_id, session_id, owner)


def not_ended(turn: StoredTurn) -> Conflict:
    """Return the error for a turn that has no trace yet."""
    return Conflict(
        f"Turn {turn.header.turn_id} is {turn.status.value}. It has a trace when it has ended.", code="run_not_ended"
    )
