"""Admission of turns to sessions in use."""

from stint.services.admission import Admission
from stint.services.agents.interrupted import runs
from stint.services.turns.cancellation import TurnCancellation


def admit_turns(cancellation: TurnCancellation, agent_id: str, session_id: str) -> Admission:
    """Return the admission to a session."""
    turns = cancellation.turns

    async def find_running() -> str | None:
        record = await turns.store.sessions.get(turns.tenant, agent_id, session_id)
        running = record.lease_turn
        return running if running is not None and runs(record, running) else None

    async def is_free() -> bool:
        return await find_running() is None

    async def interrupt() -> None:
        running = await find_running()
        if running is not None:
            await cancellation.cancel(agent_id, session_id, running)

    return Admission(turns.store.session_line(turns.tenant, agent_id, session_id), is_free, interrupt)
