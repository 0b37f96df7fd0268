"""Sessions: create, read, list, delete.

  the session                                          expires after
  of an agent with persistence, no `retention_days`    never
  with `expires_after`, or `retention_days`            that time, at most `expiry_days`
  of an agent without persistence                      that time, at most `expiry_days`, the default

Reads of a session start three reads at once: the agent, the session and the first page of turns. An error of the agent
is reported first, then that of the session, so that the answer does not depend on which read is faster. Further pages
are read when they are needed, one at a time, since a session may be larger than the memory.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import end_users_of, find_attempt
from stint.domain.errors import Conflict, NotFound, TooLarge
from stint.domain.expiry import DAY_SECONDS, Expiry, find_end
from stint.domain.ids import copied_id, inline_agent_id, is_inline_agent, new_id
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.sessions import ForkFrom, Session, SessionSettings
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.paging import MAX_BYTES, Page, Window, carried_size
from stint.domain.schema import now
from stint.domain.session_budgets import SessionBudget
from stint.domain.tasks import DeletionTask
from stint.log_keys import add_log_keys
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted
from stint.services.deletions import Deletions
from stint.services.runs.webhook_events import NO_WEBHOOKS, WebhookEvents
from stint.store.parallel import value_of
from stint.store.sessions import SessionRecord
from stint.store.store import Store

if TYPE_CHECKING:
    from stint.services.agents.session_forks import SessionForks
    from stint.store.threads import NewThread

OverrideConfig = Callable[[AgentConfig], AgentConfig]
"""Returns the configuration of a session, for that of its agent."""

EXAMINED_AT_ONCE, ROUNDS = 100, 5
"""Maximum turns of a round of a search by status, which are read as a page of that length, and maximum rounds."""


class Sessions:
    """The sessions of a tenant. Sessions of an agent without persistence expire `expiry_days` after their creation.

    Others expire after `retention_days`, unless that is 0. No session that expires lives longer than `expiry_days`.
    """

    def __init__(
        self,
        tenant: str,
        store: Store,
        agents: Agents,
        deletions: Deletions,
        expiry_days: float,
        retention_days: float = 0,
        history_bytes: int = 0,
        webhooks: WebhookEvents = NO_WEBHOOKS,
    ) -> None:
        self.tenant = tenant
        self.store = store
        self.agents = agents
        self.deletions = deletions
        self.expiry_days = expiry_days
        self.retention_days = retention_days
        self.history_bytes = history_bytes
        self.webhooks = webhooks

    @property
    def forks(self) -> "SessionForks":
        from stint.services.agents.session_forks import SessionForks  # noqa: PLC0415 - few sessions are forks

        return SessionForks(self.tenant, self.store, self.deletions, self.history_bytes)

    async def create(
        self,
        agent_id: str,
        session_name: str,
        expires_after: Expiry | None = None,
        session_id: str | None = None,
        *,
        fork_from: ForkFrom | None = None,
        metadata: Mapping[str, str] | None = None,
        override: OverrideConfig | None = None,
        vault_ids: Sequence[str] = (),
        budget: SessionBudget | None = None,
        thread: "NewThread | None" = None,
    ) -> str:
        """Store a session under a new id, and return the id. With `fork_from`, it starts with copies of turns.

        A fork has `metadata`, too, and not that of its source. A session keeps the configuration that its agent has
        now. `override` changes it for this session alone. `budget` limits what all its turns spend. It becomes the
        session of `thread`.

        Raises:
            NotFound: there is no such agent, or no such session or turn to fork from.
            Conflict: the agent is that of another session alone.
            ConditionFailed: the thread has another session.
            StintError: see `SessionForks.create`.
            TooLarge: the name would not fit into a response.
        """
        size = carried_size(session_name)
        if size > MAX_BYTES:
            raise TooLarge(f"The session_name has {size} bytes; at most {MAX_BYTES} are allowed.", param="session_name")
        (config, changed), _ = await asyncio.gather(
            self.agents.config_of_new_session(agent_id), self.webhooks.prepare()
        )
        session = Session(session_id=session_id or new_id(), session_name=session_name, started_at=now())
        refuse_agent_of_another(agent_id, session.session_id)
        settings = None
        if override is not None:
            config, changed = await self.agents.prepare(override(config)), True
        if changed or metadata or vault_ids:
            settings = SessionSettings(
                agent=config if changed else None,
                metadata={**(metadata or {})},
                vault_ids=[*vault_ids],
                updated_at=session.started_at,
            )
        expires_at = self.find_end(config, expires_after)
        if fork_from is None:
            create, users = self.store.sessions.create, end_users_of()
            await create(
                self.tenant, agent_id, session, expires_at, users, settings=settings, budget=budget, thread=thread
            )
        else:
            await self.forks.create(agent_id, session, expires_at, fork_from, metadata=metadata or {}, budget=budget)
        add_log_keys(session_id=session.session_id)
        await self.webhooks.session_created(session.session_id)
        return session.session_id

    async def create_with_agent(
        self,
        config: AgentConfig,
        session_id: str,
        metadata: Mapping[str, str],
        vault_ids: Sequence[str] = (),
        budget: SessionBudget | None = None,
    ) -> str:
        """Store a session with an agent of its own, which is in no list and is deleted with it. Return the agent's id.

        Raises StintError as `Agents.create`.
        """
        agent_id = inline_agent_id(session_id)
        # Before the agent: if the session is never stored, nothing else would find the agent.
        task = DeletionTask(tenant=self.tenant, agent_id=agent_id, session_id=session_id)
        await self.deletions.send(task.before_creation())
        await self.agents.create(config, agent_id, expires_at=self.find_end(config, None))
        await self.create(agent_id, "", session_id=session_id, metadata=metadata, vault_ids=vault_ids, budget=budget)
        return agent_id

    def find_end(self, config: AgentConfig, expires_after: Expiry | None) -> int | None:
        """Return the end of a session that is created now, in seconds since 1970; None if it stays."""
        expires_at = find_end(time.time(), expires_after, self.retention_days)
        if expires_at is None and config.enable_session_persistence:
            return None
        latest = int(time.time() + self.expiry_days * DAY_SECONDS)
        return min(expires_at or latest, latest)

    async def find_created(self, agent_id: str, session_id: str) -> str:
        """Return the id of a session that a retry may get. Raises NotFound.

        Without an idempotency key, that is a session without turns of its own: the id of another one has arrived.
        """
        await self.agents.require(agent_id)
        record = await self.store.sessions.get(self.tenant, agent_id, session_id)
        # The retry is recognized by its contents only. A session that has turns is one that its client knows.
        if not find_attempt().object_id and (has_own_turns(record) or record.lease_turn is not None):
            raise NotFound("Session", session_id)
        if record.unchecked and record.forked_from is not None:  # its process died
            await self.forks.check(agent_id, session_id, record.forked_from.session_id)
        return session_id

    async def get(self, agent_id: str, session_id: str) -> Session:
        """Return a session with all its turns in creation order. Raises NotFound."""
        session, others = await self.read_pages(agent_id, session_id)
        if others is not None:
            async for turns in others:
                session.turns.extend(turns)
        return session

    async def read_pages(
        self, agent_id: str, session_id: str, turn_ids: Set[str] | None = None
    ) -> tuple[Session, AsyncIterator[list[Turn]] | None]:
        """Return a session with its first turns in creation order, and an iterator over pages of the others, if any.

        One page at a time, a few MB of JSON, is in memory. `turn_ids` selects some of the turns.

        Raises:
            NotFound: there is no such agent or session.
        """
        pages = self.store.turns.pages(self.tenant, agent_id, session_id, turn_ids)
        agent, found, page = await asyncio.gather(
            self.agents.require(agent_id),
            self.store.sessions.get(self.tenant, agent_id, session_id),
            anext(pages),
            return_exceptions=True,
        )
        value_of(agent)
        record = value_of(found)
        first, more = value_of(page)

        async def others() -> AsyncIterator[list[Turn]]:
            async for page, _ in pages:
                yield await self._show(agent_id, record, page)

        turns = await self._show(agent_id, record, first)
        metadata: dict[str, str] = {}
        if record.settings is not None:
            metadata = (await self.store.sessions.get_settings(self.tenant, agent_id, session_id)).metadata
        session = Session(
            session_id=session_id,
            session_name=record.name,
            turns=turns,
            started_at=record.started_at,
            vector_db_id=record.vector_db_id,
            forked_from=record.forked_from,
            metadata=metadata or None,
            budget=record.budget,
        )
        return session, others() if more else None

    async def _show(self, agent_id: str, record: SessionRecord, stored: Sequence[StoredTurn]) -> list[Turn]:
        return [
            (await mark_interrupted(self.store, self.tenant, agent_id, record, turn=turn)).to_turn() for turn in stored
        ]

    async def list_turns(
        self, agent_id: str, session_id: str, *, after: str | None, limit: int, newest_first: bool
    ) -> Page[Turn]:
        """Return a page of a session's turns.

        Raises:
            NotFound: there is no such agent or session, or `after` is not the id of a turn.
        """
        read = self.store.turns.page(
            self.tenant, agent_id, session_id, after=after, limit=limit, newest_first=newest_first
        )
        agent, session, page = await asyncio.gather(
            self.agents.require(agent_id),
            self.store.sessions.get(self.tenant, agent_id, session_id),
            read,
            return_exceptions=True,
        )
        _, record = value_of(agent), value_of(session)
        stored, more = value_of(page)
        return Page(await self._show(agent_id, record, stored), more)

    async def find_turns(
        self,
        agent_id: str,
        session_id: str,
        status: TurnStatus,
        *,
        after: str | None,
        limit: int,
        newest_first: bool,
    ) -> Page[Turn]:
        """Return turns of a session that have a status, of the first round that has any.

        `position` is the last turn that was looked at, or the last of the page. Raises as `list_turns`.
        """
        for _ in range(ROUNDS):
            page = await self.list_turns(
                agent_id, session_id, after=after, limit=EXAMINED_AT_ONCE, newest_first=newest_first
            )
            found = [turn for turn in page.data if turn.status is status]
            after = page.data[-1].turn_id if page.data else after
            if len(found) > limit:
                return Page(found[:limit], True, found[limit - 1].turn_id)
            if found or not page.has_more:
                return Page(found, page.has_more, after)
        return Page([], True, after)

    async def list(
        self, agent_id: str, window: Window, *, last_turns: bool = False, status: TurnStatus | None = None
    ) -> Page[Session]:
        """List an agent's sessions by creation, without their turns. `status` is that of the last turn.

        Raises:
            NotFound: there is no such agent.
        """
        agent, page = await asyncio.gather(
            self.agents.require(agent_id),
            self.store.sessions.list(self.tenant, agent_id, window, last_turns=last_turns, status=status),
            return_exceptions=True,
        )
        value_of(agent)
        return value_of(page)

    async def delete(self, agent_id: str, session_id: str) -> None:
        """Delete a session with its turns. When this returns, no reader can find it.

        Raises:
            NotFound: there is no such session.
        """
        task = DeletionTask(tenant=self.tenant, agent_id=agent_id, session_id=session_id)
        mark = partial(self.store.sessions.mark_deleted, self.tenant, agent_id, session_id)
        await self.deletions.start_deletion(task, mark)


def refuse_agent_of_another(agent_id: str, session_id: str = "") -> None:
    """Refuse the agent that another session alone has. Raises Conflict."""
    if is_inline_agent(agent_id) and agent_id != inline_agent_id(session_id):
        raise Conflict(f"Agent {agent_id} belongs to one session alone. Create another agent.", code="inline_agent")


def has_own_turns(record: SessionRecord) -> bool:
    """Return whether a session has a turn that is not a copy, or that was resumed."""
    if record.last is None or record.forked_from is None:
        return record.last is not None
    copied = copied_id(record.forked_from.turn_id, record.session_id)
    return record.last != (copied, record.copied_records)
