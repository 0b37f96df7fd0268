"""Turns and responses that events request from the worker. Each event is handled once.

The event bus delivers an event at least once. Its record has a lease, the id of what it began, and at last its outcome:

| the record of the event         | what a delivery does                                           |
|---------------------------------|----------------------------------------------------------------|
| none                            | acquires it and starts                                         |
| held by a worker that renews it | nothing                                                        |
| lapsed, nothing was begun       | starts                                                         |
| lapsed, a turn was begun        | waits for that turn's end; one that was not stored starts anew |
| lapsed, a response was begun    | runs that response, as `Worker` does                           |
| has an outcome                  | returns it                                                     |

The id goes into the record before the run is stored, so no run is without an event that knows it. The outcome is stored
after the completion event is published, which may therefore be published twice, but not be lost.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from stint.caller import RequestAttempt
from stint.dataclasses import dataclass
from stint.domain.errors import Interrupted, NotFound, StintError, StoreUnavailable
from stint.domain.ids import new_name
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.notifications.completion_events import CompletionEvent, Failure, ResponseFinished, TurnFinished
from stint.domain.notifications.request_events import (
    RequestEvent,
    ResponseRequested,
    ResponseRequestEvent,
    TurnRequested,
    TurnRequestEvent,
)
from stint.domain.openai.stored_responses import ResponseStatus
from stint.log_keys import add_log_keys
from stint.loop.lease_keeper import ENDING_SECONDS, LeaseKeeper
from stint.services.background.background import Background
from stint.services.background.notifications import CompletionEvents
from stint.services.background.waiting import PAUSE_SECONDS, acquire_or_wait, retry_while_locked
from stint.services.background.worker import Worker
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.turn_handles import TurnHandle
from stint.services.turns.turn_requests import TurnRequests
from stint.store.idempotency import IdempotencyRecord, IdempotencyRecords

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventRequests:
    """Handles the events of a tenant."""

    tenant: str
    records: IdempotencyRecords
    """The records of the events, with a lease for each."""

    turns: TurnRequests
    background: Background
    """Stores the responses that events request."""

    worker: Worker
    """Runs them at once."""

    completion_events: CompletionEvents
    lease_seconds: float
    """Seconds of the lease of an event."""

    lock_wait_seconds: float
    """Seconds that an event waits for a session or conversation in use."""

    async def handle(self, request: RequestEvent, event_id: str, deadline: float) -> CompletionEvent | None:
        """Run what an event requests, publish its completion event, and return that.

        An event that was handled before returns the same completion event. Return None while another worker handles
        it. `deadline` is a time of the event loop's clock.

        Raises:
            Exception: the attempt failed, and another one may not.
        """
        if isinstance(request, TurnRequestEvent):
            add_log_keys(agent_id=request.detail.agent_id, session_id=request.detail.session_id)
            self.turns.turns.agents.name_lines(request.detail.agent_id)
        record = await self.acquire(request, event_id, deadline)
        if record is None:
            return None
        if record.outcome is not None:
            if not isinstance(request, TurnRequestEvent):
                return ResponseFinished.model_validate_json(record.outcome)
            before = TurnFinished.model_validate_json(record.outcome)
            add_log_keys(turn_id=before.turn_id)
            return before
        async with self.leased(record, deadline):
            match request:
                case TurnRequestEvent(detail=turn):
                    ended: CompletionEvent | None = await self.run_turn(turn, record, event_id, deadline)
                case ResponseRequestEvent(detail=response):
                    ended = await self.run_response(response, record.began, event_id, deadline)
            if ended is not None:
                await record.put_outcome(ended.model_dump_json())
        return ended

    async def acquire(self, request: RequestEvent, event_id: str, deadline: float) -> IdempotencyRecord | None:
        clock = asyncio.get_running_loop().time
        began = new_name("resp") if isinstance(request, ResponseRequestEvent) else ""

        async def acquire() -> IdempotencyRecord:
            return await self.records.acquire(
                self.tenant, event_id, began, min(self.lease_seconds, deadline + ENDING_SECONDS - clock())
            )

        async def held_until() -> int | None:
            return await self.records.held_until(self.tenant, event_id)

        pause = min(PAUSE_SECONDS, self.lease_seconds / 4)
        return await acquire_or_wait(acquire, held_until, "event_running", pause, deadline=deadline)

    @asynccontextmanager
    async def leased(self, record: IdempotencyRecord, deadline: float) -> AsyncIterator[None]:
        """Renew an event's lease while the body runs. If the body fails, another worker may acquire it at once."""
        now = asyncio.get_running_loop().time()
        keeper = LeaseKeeper(record, self.lease_seconds, deadline, now + self.lease_seconds)
        async with keeper.released_on_error():
            yield
        keeper.stop()

    async def run_turn(
        self, request: TurnRequested, record: IdempotencyRecord, event_id: str, deadline: float
    ) -> TurnFinished:
        """Run a turn to its end, unless the event started it before; then wait for its end.

        Raises:
            StoreUnavailable: nothing was started.
            Interrupted: a turn that was started before has not ended yet.
        """
        try:
            turn = await self.started_turn(request, record.began, deadline) or await self.new_turn(
                request, record, deadline
            )
            ended = TurnFinished.of(turn, request.agent_id, event_id)
        except (StoreUnavailable, Interrupted):
            raise
        except StintError as error:
            logger.warning("The turn was refused", extra={"error_code": error.code, "error": error.message})
            ended = TurnFinished(
                event_id=event_id,
                agent_id=request.agent_id,
                session_id=request.session_id,
                status=TurnStatus.failed,
                error=Failure.of(error),
            )
        await self.completion_events.publish(ended)
        return ended

    async def started_turn(self, request: TurnRequested, turn_id: str, deadline: float) -> Turn | None:
        """Return the turn that an event started before, once it has ended; None if it started none."""
        clock = asyncio.get_running_loop().time
        with suppress(NotFound):
            while turn_id:
                add_log_keys(turn_id=turn_id)
                turn = await self.turns.turns.get(request.agent_id, request.session_id, turn_id)
                if turn.status is not TurnStatus.in_progress:
                    return turn
                if clock() + PAUSE_SECONDS >= deadline:
                    raise Interrupted(f"Turn {turn_id} is still running.")
                await asyncio.sleep(PAUSE_SECONDS)
        return None

    async def new_turn(self, request: TurnRequested, record: IdempotencyRecord, deadline: float) -> Turn:
        """Run a turn, whose id the event's record gets before the turn is stored. Raises StintError."""
        context = RequestContext(deadline, RequestAttempt(claim=record.put_began))
        alone = request.model_copy(update={"when_busy": "reject"})  # the event waits here, and not in line

        async def start() -> TurnHandle:
            return await self.turns.submit(request.agent_id, request.session_id, alone, context)

        handle = await retry_while_locked(start, self.lock_wait_seconds, deadline)
        turn = await handle.outcome()
        await handle.finish()
        await handle.send_trace()
        return turn

    async def run_response(
        self, request: ResponseRequested, response_id: str, event_id: str, deadline: float
    ) -> ResponseFinished | None:
        """Store a response, unless it was stored before, and run it to its end; None while another worker does.

        Raises:
            Exception: the attempt failed.
        """
        stored = await self.worker.load(response_id)
        if stored is not None and stored.ending is not None:
            await self.worker.finish(stored, event_id)
            return ResponseFinished.of(stored, event_id)
        if stored is None and (refused := await self.put_response(request, response_id, event_id, deadline)):
            return refused
        done = await self.worker.handle(response_id, deadline, event_id=event_id)
        return ResponseFinished.of(done, event_id) if done is not None else None

    async def put_response(
        self, request: ResponseRequested, response_id: str, event_id: str, deadline: float
    ) -> ResponseFinished | None:
        """Store a response. Publish a refusal as its completion event, and return that. Raises StoreUnavailable."""
        try:
            put = partial(self.background.put, request, RequestContext(deadline), response_id)
            await retry_while_locked(put, self.lock_wait_seconds, deadline)
        except StoreUnavailable:
            raise
        except StintError as error:
            logger.warning("The response was refused", extra={"error_code": error.code, "error": error.message})
            refused = ResponseFinished(event_id=event_id, status=ResponseStatus.failed, error=Failure.of(error))
            await self.completion_events.publish(refused)
            return refused
        return None
