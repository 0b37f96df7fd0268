"""Opening of a session for a turn: the lease, budgets and all reads before the model call, in one round trip.

The history is read at the same time as the lease is acquired, so it may be older than the lease. The lease names the
last turn and the number of its records, if the holder before released it; then the history is compared with that.

| the last turn                            | a new turn                    | a resume of that turn            |
|------------------------------------------|-------------------------------|----------------------------------|
| ended, and is the last one known here    | nothing more is read          | nothing more is read             |
| ended, and the process knows fewer turns | the turns since then are read | likewise                         |
| runs, and its lease is renewed           | Conflict                      | Conflict                         |
| runs, and its lease has lapsed           | it is sealed as failed        | likewise, unless its last record |
|                                          |                               | has just these responses         |

Only the holder of the lease seals. A turn that looks running to it has lost its process, because no other process can
have the lease. After a seal the history is read again: the dead process may have stored records in between.
"""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence, Set

from stint.caller import record_end, record_owners
from stint.dataclasses import dataclass, field
from stint.domain.errors import NotFound
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import TurnResumeRequest
from stint.domain.run_outcome import RunStatus
from stint.domain.run_signals import TurnRef
from stint.domain.schema import now
from stint.domain.session_budgets import SessionLedger
from stint.domain.stops import stop_name
from stint.log_keys import add_log_keys
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.loop.transcript import Transcript
from stint.metering import admit_run, name_run
from stint.models.labels import find_labels
from stint.run_stop import RunDescription, describe_run, receive_signals, refuse_stopped
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import interrupted_ending
from stint.services.runs.senders import find_owner
from stint.services.runs.webhook_events import NO_WEBHOOKS, TurnPlace, WebhookEvents
from stint.services.turns.resume import stored_answer
from stint.services.turns.session_recorder import SegmentWriter, SessionRecorder
from stint.services.turns.session_transcript import SessionTranscript, TranscriptCache, calls_of, context_size_of
from stint.store.parallel import value_of
from stint.store.session_leases import SessionLease
from stint.store.store import Store
from stint.store.turns import History
from stint.tools.port import CallerSession

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session with its lease and all data that a turn needs.

    `past` has its ended turns, and `transcript` the messages that the model sees: those of the newest turns that fit.
    """

    store: Store
    config: AgentConfig
    keeper: LeaseKeeper[SessionLease]
    past: SessionTranscript
    transcript: Transcript
    files_lock: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False)

    @property
    def caller(self) -> CallerSession:
        """Return the session as tools see it."""
        lease = self.keeper.lease

        async def read_files() -> Mapping[str, bytes]:
            async with self.files_lock:  # a call at the same time may replace them
                return await self.store.session_files.read(lease) if lease.files else {}

        async def write_files(written: Mapping[str, bytes], removed: Sequence[str]) -> Sequence[str]:
            from stint.services.turns.code_outputs import keep_outputs  # noqa: PLC0415 - few turns run code

            async with self.files_lock:
                return await keep_outputs(self.store.session_files, lease, written, removed)

        return CallerSession(lease.agent_id, lease.session_id, lease.vector_db_id, read_files, write_files=write_files)

    @property
    def last(self) -> StoredTurn | None:
        """Return the session's last turn, whether the model sees it or not."""
        return self.past.last


@dataclass(frozen=True, slots=True)
class SessionOpener:
    """Opens the sessions of a tenant. `history_bytes` limits the history that a model sees, in bytes of JSON."""

    tenant: str
    store: Store
    agents: Agents
    transcripts: TranscriptCache
    lease_seconds: float
    history_bytes: int
    webhooks: WebhookEvents = NO_WEBHOOKS

    async def open_session(
        self,
        agent_id: str,
        session_id: str,
        turn_id: str,
        deadline: float,
        request: TurnResumeRequest | None = None,
        without: str = "",
    ) -> OpenSession:
        """Acquire the lease, and concurrently read the agent, and the history unless this process remembers it.

        With a `request`, the turn is to be resumed by it. The model does not see the failed turn `without`, which
        this one repeats.

        Raises:
            NotFound: there is no such agent or session, or it has expired.
            Conflict: another turn runs in the session, or the turn to resume is not its last one.
            Forbidden: the session belongs to another end user, or the caller may not use the model.
            RateLimitExceeded, QuotaExceeded: a budget is used up.
            Stopped: the session, the turn, the caller's key or the tenant was stopped.
        """
        resume = request is not None
        asked, span = asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)
        known = self.transcripts.get((self.tenant, agent_id, session_id))
        reading = asyncio.ensure_future(self.agents.config(agent_id))
        config, lease, history, admitted = await asyncio.gather(
            reading,
            self.acquire(agent_id, session_id, turn_id, resume=resume, seconds=span),
            self.read_unless_known(known, agent_id, session_id),
            admit_run(find_model=lambda: self.find_model(agent_id, reading)),
            return_exceptions=True,
        )
        if isinstance(lease, BaseException):
            if isinstance(lease, NotFound):
                self.transcripts.forget((self.tenant, agent_id, session_id))
            raise config if isinstance(config, BaseException) else lease
        add_log_keys(turn_id=lease.turn_id)
        keeper = LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)
        async with keeper.released_on_error():
            found = value_of(config) if lease.settings is None else await self.read_own(lease, value_of(config))
            await refuse_stopped(stop_name("session", session_id), stop_name("turn", lease.turn_id))
            value_of(admitted)
            name_run(agent_id, session_id)
            turn = TurnRef(agent_id, session_id, lease.turn_id)
            receive_signals(turn)
            describe_run(RunDescription(turn, found.model, find_labels()))
            past = await self.reconcile(lease, known or SessionTranscript.of(value_of(history)), request)
            if lease.ledger is not None:
                await self.limit_turn(lease.ledger, lease, past.last, found)
            return OpenSession(
                self.store, found, keeper, past, transcript=self.view(past, resume=resume, without=without)
            )

    async def limit_turn(
        self, ledger: SessionLedger, lease: SessionLease, last: StoredTurn | None, config: AgentConfig
    ) -> None:
        """Let the turn spend what the session has left, after what the log of its `last` turn says was spent.

        Raises:
            QuotaExceeded: nothing is left.
            Forbidden: the session has a limit of money, and the agent's model has no price.
        """
        from stint.spending.session_spending import limit_run, require_price  # noqa: PLC0415 - few sessions have one

        # Its process may have died before it released the lease, or another one has ended it since.
        await lease.note_spent(last.spent if last is not None else None)
        limit_run(ledger)
        await require_price(lambda: self.agents.registry.route(config.model))

    async def read_own(self, lease: SessionLease, config: AgentConfig) -> AgentConfig:
        """Return the configuration of a session with settings of its own: one more read, unless it is cached."""
        version = f"{lease.session_id}:{lease.settings}"
        cached = self.agents.find_cached(version)
        if cached is not None:
            return cached
        settings = await self.store.sessions.get_settings(lease.tenant, lease.agent_id, lease.session_id)
        found = settings.agent or config
        if settings.vault_ids:
            from stint.services.agents.offered_vaults import offer_vaults  # noqa: PLC0415 - few sessions have vaults

            found = offer_vaults(found, settings.vault_ids, lease.owner)
        self.agents.keep(version, found)
        return found

    async def find_model(self, agent_id: str, reading: Awaitable[AgentConfig]) -> str:
        """Return the full id of an agent's model, whose configuration is being read unless it is cached."""
        config = self.agents.find_cached(agent_id) or await reading
        return await self.agents.registry.route(config.model)

    async def reconcile(
        self, lease: SessionLease, known: SessionTranscript, request: TurnResumeRequest | None = None
    ) -> SessionTranscript:
        """Make the transcript complete, and seal turns whose process died, except one that a `request` resumes again.

        It is current if it ends with the turn in a lease that its holder has released. Otherwise the turns from its
        last one on are read. With the lease acquired no other turn can run, so a turn that looks running has lost its
        process.
        """
        over = lease.taken_over_turn
        resumed = request is not None and over == lease.turn_id
        if over is not None and not resumed:
            await self.seal(lease, over)  # before the read, which then has its ending
        past = known
        if over is not None or known.end != lease.last:
            past = await self.refresh_transcript(lease, known)
        if over is not None and not resumed:
            await self.announce_sealed(lease, over, past.last)
        again = request is not None and past.last is not None and stored_answer(past.last, request) is not None
        if not again and (resumed or past.is_running):
            sealed = lease.turn_id if resumed else past.turn_id
            await self.seal(lease, sealed)
            past = await self.refresh_transcript(lease, known)
            await self.announce_sealed(lease, sealed, past.last)
        lease.last = past.end
        fitted = past.fitted(self.history_bytes)
        if fitted.starts_with_result:
            return SessionTranscript.of(await self.read(lease.agent_id, lease.session_id, segments=False))
        return fitted

    def refit(self, whole: SessionTranscript) -> SessionTranscript:
        """Return what `reconcile` made of a history that was read without segments."""
        fitted = whole.fitted(self.history_bytes)
        return whole if fitted.starts_with_result else fitted

    def hides(self, past: SessionTranscript) -> bool:
        """Return whether a new turn sees nothing of a history, because its last turn alone is too long."""
        return context_size_of(past.last) > self.history_bytes

    async def refresh_transcript(self, lease: SessionLease, known: SessionTranscript) -> SessionTranscript:
        """Return the transcript with the turns since its last one, or of all turns if it does not have that one."""
        since = known.turn_id or None
        history = await self.read(lease.agent_id, lease.session_id, since)
        if since and (not history.turns or history.turns[0].header.turn_id != since):
            history = await self.read(lease.agent_id, lease.session_id)
            since = None
        return known.extended(history) if since else SessionTranscript.of(history)

    def view(self, past: SessionTranscript, *, resume: bool, without: str) -> Transcript:
        """Return the messages for the model: of the newest turns that fit, and always of the one to resume."""
        hidden = not resume and self.hides(past)
        if hidden or not past.complete:
            logger.warning(
                "The history is longer than STINT_HISTORY_BYTES: the model does not see the older turns",
                extra={"turns_shown": 0 if hidden else past.count, "history_bytes": self.history_bytes},
            )
        return Transcript() if hidden else past.transcript(without=without)

    def is_full(self, past: SessionTranscript) -> bool:
        """Return whether a history is almost too long to be read."""
        return 4 * past.uncompacted > 3 * self.history_bytes

    async def read_calls(self, session: OpenSession) -> Set[str]:
        """Return the ids of the model's calls in the turns before the last one, which are read if they are unknown."""
        lease, known = session.keeper.lease, session.past.calls
        if known is not None:
            return known
        ids = lease.tenant, lease.agent_id, lease.session_id
        history = await self.store.turns.history(*ids, max_bytes=self.history_bytes, segments=False)
        return calls_of(turn for turn in history.turns if turn.header.turn_id != session.past.turn_id)

    def make_recorder(self, session: OpenSession) -> SessionRecorder:
        """Return the recorder of the end of a session's next turn."""
        writer = SegmentWriter(self.tenant, self.store.turns)
        return SessionRecorder(
            self.transcripts, writer, session.keeper.lease, session.past, history_bytes=self.history_bytes
        )

    async def seal(self, lease: SessionLease, turn_id: str) -> None:
        """End a turn whose process died."""
        logger.warning("A turn whose process died is sealed", extra={"sealed_turn_id": turn_id})
        await self.store.turns.seal(lease, turn_id, interrupted_ending(now()))

    async def announce_sealed(self, lease: SessionLease, turn_id: str, last: StoredTurn | None) -> None:
        """Announce the end of a turn that was sealed, as the history has it."""
        # Its process may have ended it before the seal, and announced it. Both announcements have the same ids.
        if last is not None and last.header.turn_id == turn_id and last.status is RunStatus.failed:
            place = TurnPlace(lease.agent_id, lease.session_id, turn_id)
            await self.webhooks.turn_ended(place, last.status, len(last.records))

    async def acquire(
        self, agent_id: str, session_id: str, turn_id: str, *, resume: bool, seconds: float
    ) -> SessionLease:
        lease = await self.store.session_leases.acquire(
            self.tenant,
            agent_id,
            session_id,
            turn_id,
            resume=resume,
            seconds=seconds,
            owner=find_owner(),
        )
        record_owners(lease.owner.split())
        record_end(lease.expires_at)
        return lease

    async def read_unless_known(self, known: SessionTranscript | None, agent_id: str, session_id: str) -> History:
        return History([], True, None) if known else await self.read(agent_id, session_id)

    async def read(self, agent_id: str, session_id: str, since: str | None = None, *, segments: bool = True) -> History:
        return await self.store.turns.history(
            self.tenant, agent_id, session_id, max_bytes=self.history_bytes, since=since, segments=segments
        )
