"""What events ask the worker for: a turn or a response, each event once."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from stint.domain.errors import Interrupted, NotFound, StintError, StoreUnavailable
from stint.domain.ids import new_name
from stint.domain.llama_stack.events import TurnAwaitingInput, TurnComplete, TurnFailed
from stint.domain.llama_stack.turns import Turn
from stint.domain.notifications.completion_events import Ended, Failure, ResponseEnded, TurnEnded
from stint.domain.notifications.request_events import (
    AnyAsked,
    ResponseAsked,
    ResponseRequested,
    TurnAsked,
    TurnRequested,
)
from stint.domain.openai.stored_responses import ResponseStatus
from stint.domain.run_outcome import TurnStatus
from stint.log_keys import add_log_keys
from stint.loop.lease_keeper import ENDING_SECONDS, Hold
from stint.services.background.background import Background
from stint.services.background.notifications import Announcements
from stint.services.background.waiting import PAUSE_SECONDS, patiently, take_from_the_dead
from stint.services.background.work import Work
from stint.services.turns.turn_run import TurnRun
from stint.services.turns.turns import Turns
from stint.store.claims import Claim, Claims

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Invocations:
    """Does what the events of a tenant ask for. `patience` is in seconds, for what is in use."""

    tenant: str
    claims: Claims
    turns: Turns
    background: Background
    work: Work
    announcements: Announcements
    lease_seconds: float
    patience: float

    async def do(self, asked: AnyAsked, event_id: str, deadline: float) -> Ended | None:
        """Do what an event asks for, and announce how that ended; what was done before is told as it was.

        None while another worker does it. `deadline` is a time of the event loop's clock.

        Raises:
            Exception: the attempt failed, and another one may not.
        """
        if isinstance(asked, TurnAsked):
            add_log_keys(agent_id=asked.detail.agent_id, session_id=asked.detail.session_id)
            self.turns.agents.name_lines(asked.detail.agent_id)
        claim = await self.claim(asked, event_id, deadline)
        if claim is None:
            return None
        if claim.outcome is not None:
            if not isinstance(asked, TurnAsked):
                return ResponseEnded.model_validate_json(claim.outcome)
            before = TurnEnded.model_validate_json(claim.outcome)
            add_log_keys(turn_id=before.turn_id)
            return before
        async with self.held(claim, deadline):
            match asked:
                case TurnAsked(detail=turn):
                    ended: Ended | None = await self.run_turn(turn, claim, event_id, deadline)
                case ResponseAsked(detail=response):
                    ended = await self.run_response(response, claim.began, event_id, deadline)
            if ended is not None:
                await asyncio.to_thread(self.claims.finish, claim, ended.model_dump_json())
        return ended

    async def claim(self, asked: AnyAsked, event_id: str, deadline: float) -> Claim | None:
        clock = asyncio.get_running_loop().time
        began = new_name("resp") if isinstance(asked, ResponseAsked) else ""

        def take() -> Claim:
            return self.claims.take(
                self.tenant, event_id, began, min(self.lease_seconds, deadline + ENDING_SECONDS - clock())
            )

        def held_until() -> int | None:
            return self.claims.held_until(self.tenant, event_id)

        pause = min(PAUSE_SECONDS, self.lease_seconds / 4)
        return await take_from_the_dead(take, held_until, "event_running", pause, deadline)

    @asynccontextmanager
    async def held(self, claim: Claim, deadline: float) -> AsyncIterator[None]:
        """Keep a claim while something runs under it; when that fails, another worker may claim the event at once."""
        now = asyncio.get_running_loop().time()

        def prolong(seconds: float) -> None:
            self.claims.renew(claim, seconds)

        hold = Hold(prolong, lambda: prolong(0), self.lease_seconds, deadline, now + self.lease_seconds)
        async with hold.released_on_error():
            yield
        hold.stop()

    async def run_turn(self, asked: TurnRequested, claim: Claim, event_id: str, deadline: float) -> TurnEnded:
        """Run a turn to its end, unless it was begun before: then it is told as it stands.

        Raises:
            StoreUnavailable: nothing was begun.
            Interrupted: a turn that was begun before has not ended yet.
        """
        try:
            turn = await self.begun_turn(asked, claim.began, deadline) or await self.new_turn(asked, claim, deadline)
            ended = TurnEnded.of(turn, asked.agent_id, event_id)
        except (StoreUnavailable, Interrupted):
            raise
        except StintError as error:
            logger.warning("The turn was refused", extra={"error_code": error.code, "error": error.message})
            ended = TurnEnded(
                event_id=event_id,
                agent_id=asked.agent_id,
                session_id=asked.session_id,
                status=TurnStatus.failed,
                error=Failure.of(error),
            )
        await self.announcements.announce(ended)
        return ended

    async def begun_turn(self, asked: TurnRequested, turn_id: str, deadline: float) -> Turn | None:
        """Read the turn that an event has begun, once it has ended: one whose worker died soon shows as failed."""
        clock = asyncio.get_running_loop().time
        with suppress(NotFound):
            while turn_id:
                add_log_keys(turn_id=turn_id)
                turn = await self.turns.get(asked.agent_id, asked.session_id, turn_id)
                if turn.status is not TurnStatus.in_progress:
                    return turn
                if clock() + PAUSE_SECONDS >= deadline:
                    raise Interrupted(f"Turn {turn_id} still runs.")
                await asyncio.sleep(PAUSE_SECONDS)
        return None

    async def new_turn(self, asked: TurnRequested, claim: Claim, deadline: float) -> Turn:
        async def note(turn_id: str) -> None:
            await asyncio.to_thread(self.claims.note, claim, turn_id)

        async def start() -> TurnRun:
            return await self.turns.start(asked.agent_id, asked.session_id, asked, deadline, note=note)

        run = await patiently(start, self.patience, deadline)
        async for event in self.turns.run(run):
            if isinstance(event, TurnComplete | TurnAwaitingInput | TurnFailed):
                return event.turn
        raise AssertionError("a run ends with its terminal event")

    async def run_response(
        self, asked: ResponseRequested, response_id: str, event_id: str, deadline: float
    ) -> ResponseEnded | None:
        """Store a response, unless it was stored before, and run it to its end; None while another worker does.

        Raises:
            Exception: the attempt failed.
        """
        stored = await self.work.runs.read(response_id)
        if stored is not None and stored.ending is not None:
            ended = ResponseEnded.of(stored, event_id)
            await self.announcements.announce(ended)
            return ended
        if stored is None and (refused := await self.put_response(asked, response_id, event_id, deadline)):
            return refused
        done = await self.work.run(response_id, deadline, event_id=event_id)
        return ResponseEnded.of(done, event_id) if done is not None else None

    async def put_response(
        self, asked: ResponseRequested, response_id: str, event_id: str, deadline: float
    ) -> ResponseEnded | None:
        """Store a response; when it is refused, tell that as its end. Raises StoreUnavailable."""
        try:
            await patiently(lambda: self.background.put(asked, deadline, response_id), self.patience, deadline)
        except StoreUnavailable:
            raise
        except StintError as error:
            logger.warning("The response was refused", extra={"error_code": error.code, "error": error.message})
            refused = ResponseEnded(event_id=event_id, status=ResponseStatus.failed, error=Failure.of(error))
            await self.announcements.announce(refused)
            return refused
        return None
