"""Opening of a session for a turn: the lease and all reads before the model call, in one round trip."""

import asyncio
import logging
from dataclasses import dataclass
from typing import TypeVar

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.run_outcome import RunStatus
from stint.domain.schema import now
from stint.log_keys import add_log_keys
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import interrupted_ending
from stint.services.concurrency import value_of
from stint.store.session_leases import SessionLease
from stint.store.store import Store
from stint.store.turns import History

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session with its lease and all data that a turn needs.

    `turns` has those that the model sees, in creation order; `last` is the session's last one, whether seen or not.
    """

    config: AgentConfig
    keeper: LeaseKeeper[SessionLease]
    turns: list[StoredTurn]
    last: StoredTurn | None


@dataclass(frozen=True, slots=True)
class SessionOpener:
    """Opens the sessions of a tenant. `history_bytes` limits the history that is read, in bytes of JSON."""

    tenant: str
    store: Store
    agents: Agents
    lease_seconds: float
    history_bytes: int

    async def open_session(
        self, agent_id: str, session_id: str, turn_id: str, deadline: float, *, resume: bool
    ) -> OpenSession:
        """Acquire the lease, and concurrently read the agent and the history.

        Raises:
            NotFound: there is no such agent or session, or it has expired.
            Conflict: another turn runs in the session, or the turn to resume is not its last one.
        """
        asked, span = asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)
        config, lease, history = await asyncio.gather(
            self.agents.config(agent_id),
            self.acquire(agent_id, session_id, turn_id, resume=resume, seconds=span),
            self.read(agent_id, session_id),
            return_exceptions=True,
        )
        if isinstance(lease, BaseException):
            raise config if isinstance(config, BaseException) else lease
        add_log_keys(turn_id=lease.turn_id)
        keeper = LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)
        async with keeper.released_on_error():
            found = value_of(config)
            whole = await self.reconcile(lease, value_of(history))
            return OpenSession(found, keeper, self.view(whole, resume=resume), whole.turns[-1] if whole.turns else None)

    async def reconcile(self, lease: SessionLease, history: History) -> History:
        """Make the history complete, and seal turns whose process died.

        The history was read concurrently with the lease, and is read again if it does not end with the turn in the
        lease. With the lease acquired no other turn can run, so a turn that looks running has lost its process.
        """
        if lease.taken_over_turn is not None:
            await self.seal(lease, lease.taken_over_turn)
        if lease.taken_over_turn is not None or history.last != lease.last:
            history = await self.read(lease.agent_id, lease.session_id)
        dead = [turn.header.turn_id for turn in history.turns if turn.status is RunStatus.in_progress]
        for turn_id in dead:
            await self.seal(lease, turn_id)
        if dead:
            history = await self.read(lease.agent_id, lease.session_id)
        lease.last = history.last
        return history

    def view(self, history: History, *, resume: bool) -> list[StoredTurn]:
        """Select the turns for the model: the newest ones that fit, and always the one to resume."""
        turns = history.turns
        if not resume and turns and turns[-1].size > self.history_bytes:
            turns = []
        if len(turns) < len(history.turns) or not history.complete:
            logger.warning(
                "The history is longer than STINT_HISTORY_BYTES: the model does not see the older turns",
                extra={"turns_shown": len(turns), "history_bytes": self.history_bytes},
            )
        return turns

    async def seal(self, lease: SessionLease, turn_id: str) -> None:
        """End a turn whose process died."""
        logger.warning("A turn whose process died is sealed", extra={"sealed_turn_id": turn_id})
        await self.store.turns.seal(lease, turn_id, interrupted_ending(now()))

    async def acquire(
        self, agent_id: str, session_id: str, turn_id: str, *, resume: bool, seconds: float
    ) -> SessionLease:
        return await self.store.session_leases.acquire(
            self.tenant,
            agent_id,
            session_id,
            turn_id,
            resume=resume,
            seconds=seconds,
        )

    async def read(self, agent_id: str, session_id: str) -> History:
        return await self.store.turns.history(self.tenant, agent_id, session_id, max_bytes=self.history_bytes)
