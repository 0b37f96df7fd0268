"""Turns of sessions in use: they start at once, later, or not at all."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from stint.domain.errors import Conflict
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.turns import Turn, TurnCreateRequest
from stint.domain.when_busy import WhenBusy
from stint.observability import Observation
from stint.services.agents_api import AgentsServices
from stint.services.turns.turn_run import TurnRun


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to be created in a session."""

    services: AgentsServices
    agent_id: str
    session_id: str
    start: Callable[[], Awaitable[TurnRun]]

    async def start_now(self, body: TurnCreateRequest) -> "TurnRun | WaitingTurn":
        """Start the turn, or return it as one that waits. Raises StintError."""
        known = self.services.agents.find_cached(self.agent_id)
        when_busy = body.when_busy or (known.when_busy if known else None)
        if when_busy is not None:
            return await self.admit(when_busy)
        try:
            return await self.start()
        except Conflict as conflict:
            chosen = (await self.services.agents.config(self.agent_id)).when_busy
            if conflict.code != "session_locked" or chosen in (None, "reject"):
                raise
            return WaitingTurn(self, chosen)

    async def admit(self, when_busy: WhenBusy) -> "TurnRun | WaitingTurn":
        if when_busy == "reject":
            return await self.start()
        admission = self.services.make_turn_admission(self.agent_id, self.session_id)
        return await admission.start_now(self.start, when_busy) or WaitingTurn(self, when_busy)


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn that waits for its session."""

    new: NewTurn
    when_busy: WhenBusy

    async def events(self, observation: Observation, deadline: float) -> AsyncGenerator[Event, None]:
        """Yield the events of the turn once it has started. Raises StintError if it cannot start."""
        services = self.new.services
        admission = services.make_turn_admission(self.new.agent_id, self.new.session_id)
        turn = await admission.start_later(self.new.start, self.when_busy, deadline)
        async for event in observation.yield_events(services.turns.run(turn), turn.used):
            yield event
        await services.turns.write_segments(turn)

    async def run_to_end(self, observation: Observation, deadline: float) -> Turn:
        """Run the turn, and return it. Raises StintError if it cannot start, or fails."""
        last: Event | None = None
        async for event in self.events(observation, deadline):
            last = event
        if isinstance(last, TurnFailed):
            raise last.error
        assert isinstance(last, TurnComplete | TurnAwaitingInput)  # noqa: S101 - a run ends with its terminal event
        return last.turn
