"""Turns of sessions in use: they start at once, later, or not at all."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from stint.apis.agents import AgentsServices
from stint.dataclasses import dataclass
from stint.domain.errors import DeadlineExceeded
from stint.domain.llama_stack.events import Event, NumberedEvent
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.when_busy import WhenBusy
from stint.http.turn_attempts import FollowedTurn, find_earlier_turn, note_turn
from stint.observability import Observation
from stint.services.turns.turn_run import TurnRun
from stint.tools.port import ProviderData


@dataclass(frozen=True, slots=True)
class NewTurn:
    """A turn to be created in a session."""

    services: AgentsServices
    agent_id: str
    session_id: str
    body: TurnCreateRequest
    deadline: float
    keys: ProviderData

    async def start(self) -> TurnRun:
        turns = self.services.turns
        return await turns.start(self.agent_id, self.session_id, self.body, self.deadline, self.keys, note_turn)

    async def find_earlier(self) -> FollowedTurn | None:
        return await find_earlier_turn(self.services, self.agent_id, self.session_id, self.deadline)

    async def start_now(self) -> "TurnRun | WaitingTurn":
        """Start the turn, or return it as one that waits. Raises StintError."""
        when_busy = self.body.when_busy or (await self.read_default())
        if when_busy in (None, "reject"):
            return await self.start()
        admission = self.services.make_turn_admission(self.agent_id, self.session_id)
        started = await admission.admission.start_now(self.start, when_busy)
        if started is not None:
            return started
        if when_busy == "interrupt":
            return WaitingTurn(self, None)
        body = self.body.model_copy(update={"when_busy": when_busy})
        return WaitingTurn(self, await admission.accept(body))

    async def read_default(self) -> WhenBusy | None:
        """Return the agent's `when_busy`. Only a process that has not read the agent lately reads it before it starts.

        Raises:
            NotFound: there is no such agent.
        """
        agents = self.services.agents
        config = agents.find_cached(self.agent_id) or await agents.config(self.agent_id)
        return config.when_busy


@dataclass(frozen=True, slots=True)
class WaitingTurn:
    """A turn that waits for its session as a message, or that interrupts the running turn."""

    new: NewTurn
    message_id: str | None

    async def start(self, wait_until: float) -> TurnRun | FollowedTurn:
        """Start the turn when it is its turn, or follow the one that has taken its message.

        Raises:
            DeadlineExceeded: it still waits at `wait_until`, a time of the event loop's clock.
            StintError: it cannot start, or was cancelled.
        """
        new = self.new
        admission = new.services.make_turn_admission(new.agent_id, new.session_id)
        if self.message_id is None:
            return await admission.admission.start_after_interrupting(new.start, wait_until, new.find_earlier)
        started = await admission.start(
            self.message_id, new.body, new.deadline, new.keys, note_turn, wait_until=wait_until
        )
        if isinstance(started, TurnRun):
            return started
        follow = new.services.make_turn_retries().follow_message
        events = await follow(new.agent_id, new.session_id, started.message_id, started.run_id, new.deadline)
        return FollowedTurn(events)

    async def events(self, observation: Observation) -> AsyncGenerator[NumberedEvent, None]:
        """Yield the events of the turn once it has started. Raises StintError if it cannot start."""
        services = self.new.services
        try:
            turn = await self.start(self.new.deadline)
        except DeadlineExceeded as error:
            error.turn_id = self.message_id
            raise
        if isinstance(turn, FollowedTurn):
            async for numbered in turn.read_events():
                yield numbered
            return
        events = observation.yield_events(services.turns.run(turn), turn.used)
        async for numbered in number_events(events, turn.first_event):
            yield numbered
        await services.turns.write_segments(turn)


async def number_events(events: AsyncGenerator[Event, None], first: int) -> AsyncGenerator[NumberedEvent, None]:
    """Yield the events of a run with their numbers among those of the turn."""
    async with aclosing(events):
        async for event in events:
            yield NumberedEvent(first, event)
            first += 1
