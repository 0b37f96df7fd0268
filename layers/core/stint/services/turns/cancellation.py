"""Cancellation of turns, wherever they run, and heartbeats of their clients.

| the turn                               | what ends it                                                      |
|----------------------------------------|-------------------------------------------------------------------|
| waits in line as a message             | one conditional write on the message                              |
| runs, and its process reads the signal | that process, within ENDING_SECONDS; its finished steps are kept  |
| runs, and its process does not react   | this process: it expires the lease, takes it over and seals       |
| waits for its client                   | this process, which takes the lease and seals                     |
| waits, and is being resumed            | the resuming process gets the signal; else this process, as above |
| has ended                              | nothing: it is returned unchanged                                 |

The lease is expired before it is acquired, and the seal is written under the lease. So a process that reacts too late
finds its next record's key taken, and a client that gets the cancelled turn can start the next one at once.
"""

import asyncio
from contextlib import suppress

from stint.caller import find_end_user
from stint.dataclasses import dataclass, replace
from stint.domain.errors import Conflict, NotFound, StintError
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.run_signals import HeartbeatReceived, TurnRef
from stint.domain.schema import now
from stint.domain.waiting_messages import MessageState
from stint.services.agents.interrupted import runs
from stint.services.runs.polling_pauses import poll
from stint.services.runs.senders import find_owner
from stint.services.runs.webhook_events import TurnPlace
from stint.services.turns.resume import forget_calls
from stint.services.turns.turns import Turns

ENDING_SECONDS = 3.0
"""Seconds in which the process of a cancelled turn ends it. After them, the turn is ended without its process."""

ACTIVE = (TurnStatus.in_progress, TurnStatus.awaiting_input)


@dataclass(frozen=True, slots=True)
class TurnCancellation:
    """Cancels the turns of a tenant."""

    turns: Turns

    async def cancel(self, agent_id: str, session_id: str, turn_id: str) -> Turn:
        """Cancel a turn, and return it when it has ended. One that has ended is unchanged.

        Raises:
            NotFound: there is no such agent, session or turn.
            Forbidden: the session belongs to another end user.
        """
        run = TurnRef(agent_id, session_id, turn_id)
        turn = await self.get(run)
        run = replace(run, turn_id=turn.turn_id)
        if turn.status is TurnStatus.in_progress and not turn.steps and await self.cancel_message(run):
            return await self.get(run)
        if turn.status is TurnStatus.in_progress:
            turn = await (self.wait_for_ending(run) if await self.signal(run) else self.get(run))
        if turn.status not in ACTIVE:
            return turn
        if turn.status is TurnStatus.awaiting_input and (ended := await self.end_resumed(run)) is not None:
            return ended
        await self.turns.store.session_leases.expire(self.turns.tenant, agent_id, session_id, run.turn_id)
        return await self.end_turn(run)

    async def receive_heartbeat(self, agent_id: str, session_id: str, turn_id: str) -> HeartbeatReceived:
        """Note that the client of a turn is there. Without effect on a turn that does not run.

        Raises:
            NotFound: there is no such agent, session or turn.
            Forbidden: the session belongs to another end user.
        """
        run, tenant, signals = TurnRef(agent_id, session_id, turn_id), self.turns.tenant, self.turns.store.run_signals
        if await signals.put_turn_heartbeat(tenant, run, find_owner()):
            return HeartbeatReceived()
        found = (await self.get(run)).turn_id
        if found != turn_id:  # the turn that has the message with this id
            await signals.put_turn_heartbeat(tenant, replace(run, turn_id=found), find_owner())
        return HeartbeatReceived()

    async def get(self, run: TurnRef) -> Turn:
        return await self.turns.get(run.agent_id, run.session_id, run.turn_id)

    async def cancel_message(self, run: TurnRef) -> bool:
        """Cancel a message that waits for the session, and return whether there is one of the caller's end user."""
        line = self.turns.store.session_line(self.turns.tenant, run.agent_id, run.session_id)
        state = await line.get(run.turn_id)
        lost = state if state is not None and await self.is_lost(run, state) else None
        return await line.cancel(run.turn_id, find_end_user(), lost)

    async def is_lost(self, run: TurnRef, state: MessageState) -> bool:
        """Return whether the turn that has claimed a message has not stored it, and does not run."""
        store, ids = self.turns.store, (self.turns.tenant, run.agent_id, run.session_id)
        if state.claimed_by is None or runs(await store.sessions.get(*ids), state.claimed_by):
            return False
        try:
            turn = await store.turns.get(*ids, state.claimed_by)
        except NotFound:
            return True
        return state.merged_into is not None and run.turn_id not in {each.message_id for each in turn.merged}

    async def signal(self, run: TurnRef) -> bool:
        """Cancel a turn in the process that runs it, and return whether there is one."""
        return await self.turns.store.run_signals.cancel_turn(self.turns.tenant, run, find_owner())

    async def wait_for_ending(self, run: TurnRef) -> Turn:
        """Return a turn when it has ended, or after ENDING_SECONDS."""
        turn = await self.get(run)
        async for _ in poll(ENDING_SECONDS):
            if turn.status is not TurnStatus.in_progress:
                break
            turn = await self.get(run)
        return turn

    async def end_resumed(self, run: TurnRef) -> Turn | None:
        """End a turn that waits for its client, and return it.

        If it is being resumed, the process that does so gets a signal to stop. Return None if it does not react.
        """
        with suppress(Conflict):
            return await self.end_turn(run)
        await self.signal(run)
        async for _ in poll(ENDING_SECONDS):
            turn = await self.get(run)
            if turn.status not in ACTIVE:
                return turn
            if turn.status is TurnStatus.awaiting_input:
                with suppress(Conflict):
                    return await self.end_turn(run)
        return None

    async def fail_waiting(self, agent_id: str, session_id: str, turn_id: str, error: StintError) -> Turn:
        """End a turn that waits for its client with an error, and return it. Raises as `cancel`, and Conflict."""
        ending = RunOutcome(status=RunStatus.failed, completed_at=now(), error=ErrorInfo.of(error))
        return await self.end_turn(TurnRef(agent_id, session_id, turn_id), ending)

    async def end_turn(self, run: TurnRef, ending: RunOutcome | None = None) -> Turn:
        """End a turn that waits for its client, or whose process does not react. By default, it is cancelled."""
        ending = ending or RunOutcome(status=RunStatus.cancelled, completed_at=now())
        store, opener = self.turns.store, self.turns.opener
        ids = run.agent_id, run.session_id, run.turn_id
        try:
            lease = await opener.acquire(*ids, resume=True, seconds=opener.lease_seconds)
        except Conflict:
            turn = await self.get(run)
            if turn.status in ACTIVE:
                raise
            return turn
        lease.forget_last()
        try:
            records = await store.turns.seal(lease, run.turn_id, ending, ends_waiting=True)
            await forget_calls(self.turns.store, lease, run.turn_id)
        finally:
            await asyncio.shield(lease.release())
        turn = await self.get(run)
        if turn.status is TurnStatus(ending.status):
            await opener.webhooks.turn_ended(TurnPlace(*ids), ending.status, records)
        return turn
