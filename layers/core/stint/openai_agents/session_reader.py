"""Sessions of OpenAI's Agents API, as they are stored.

The API names a session by its id alone, so each request begins with the list of all sessions, which has its agent. What
a session shows is derived from records that have other purposes:

    shown                 read from
    agent, metadata       the session's settings, or its agent's first configuration
    status                how the last turn has ended, and the line of messages that wait
    required actions      the waiting calls of the last turn, without those whose results have arrived
    usage                 the session's record, which each release of its lease updates

The record of a session without a lease counts the records of its last turn, so one read finds how that has ended. Only
a turn that runs, waits or has lost its process is read whole.

    the last turn             its line      the session is
    runs                      -             in_progress
    waits for its client      -             requires_action, or in_progress once all results are there
    has ended, or none        messages      in_progress: they start within seconds
    has ended, or none        empty         idle
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn, unanswered_calls
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.paging import MAX_ENTRIES, Page, Window
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.log_keys import add_log_keys
from stint.openai_agents.agents import from_session_agent
from stint.openai_agents.schemas.sessions import AgentSessionObject, PublicSessionStatus, RequiredAction
from stint.openai_agents.tool_labels import ServerLabels, label_tools
from stint.openai_agents.turns import from_usage, required_actions, seconds_of
from stint.services.agents.agents import Agents
from stint.services.agents.interrupted import mark_interrupted
from stint.services.turns.session_input import SessionInput
from stint.services.turns.turn_requests import TurnRequests
from stint.store.call_results import PausedTurn
from stint.store.parallel import map_concurrently
from stint.store.session_index import ListedSession
from stint.store.sessions import SessionRecord
from stint.store.store import Store

ROUNDS = 10
"""Maximum parts of a list that are read until one has an entry: clients of the API take an empty page for the end."""


SESSIONS_AT_ONCE = 8
"""Sessions of a list that are read at once, some with their last turns, which may be large."""


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with the configuration of its turns."""

    agent_id: str
    record: SessionRecord
    config: AgentConfig
    metadata: dict[str, str]
    updated_at: datetime
    vault_ids: Sequence[str] = ()

    @property
    def session_id(self) -> str:
        return self.record.session_id

    def labels_of(self, turn: StoredTurn) -> ServerLabels:
        """Return the labels of the tools of a turn."""
        return label_tools(self.config, turn.header.servers)

    def show(
        self, status: PublicSessionStatus, last_active: datetime | None, actions: list[RequiredAction] | None = None
    ) -> AgentSessionObject:
        """Return the session as the API shows it. `last_active` is the time of its last turn."""
        active = self.updated_at if last_active is None else max(self.updated_at, last_active)
        return AgentSessionObject(
            id=self.session_id,
            created_at=seconds_of(self.record.started_at),
            last_active_at=seconds_of(active),
            status=status,
            agent=from_session_agent(self.agent_id, self.config),
            metadata=self.metadata,
            required_actions=actions or [],
            usage=from_usage(self.record.usage),
            vault_ids=[*self.vault_ids],
            budget=self.record.budget,
        )


@dataclass(frozen=True, slots=True)
class SessionReader:
    """Reads the sessions of a tenant."""

    tenant: str
    store: Store
    agents: Agents
    requests: TurnRequests

    async def find_agent(self, session_id: str) -> str:
        """Return the agent of a session, which the following log lines name. Raises NotFound."""
        agent_id = await self.store.session_index.find_agent(self.tenant, session_id)
        add_log_keys(agent_id=agent_id)
        return agent_id

    async def open(self, session_id: str) -> SessionView:
        """Read a session. Raises NotFound."""
        return await self.read(await self.find_agent(session_id), session_id)

    async def open_input(self, session_id: str) -> SessionInput:
        """Return the input of a session. Raises NotFound."""
        return SessionInput(self.requests, await self.find_agent(session_id), session_id)

    def input_of(self, view: SessionView) -> SessionInput:
        """Return the input of a session that has been read."""
        return SessionInput(self.requests, view.agent_id, view.session_id)

    async def read(self, agent_id: str, session_id: str) -> SessionView:
        """Read a session of an agent. Raises NotFound."""
        record = await self.store.sessions.get(self.tenant, agent_id, session_id)
        if record.settings is None:
            return SessionView(agent_id, record, await self.agents.config(agent_id), {}, record.started_at)
        settings = await self.store.sessions.get_settings(self.tenant, agent_id, session_id)
        config = settings.agent or await self.agents.config(agent_id)
        return SessionView(agent_id, record, config, settings.metadata, settings.updated_at, settings.vault_ids)

    async def refresh(self, view: SessionView) -> SessionView:
        """Read a session again: its record, and its settings if they have changed. Raises NotFound."""
        record = await self.store.sessions.get(self.tenant, view.agent_id, view.session_id)
        if record.settings != view.record.settings:
            return await self.read(view.agent_id, view.session_id)
        return replace(view, record=record)

    async def show(self, view: SessionView) -> AgentSessionObject:
        """Return a session as the API shows it. Raises NotFound if it was deleted."""
        ids = self.tenant, view.agent_id, view.session_id
        ending, places = await asyncio.gather(self.find_ending(view), self.store.session_line(*ids).read())
        if ending is not None:
            return view.show("in_progress" if places else "idle", ending.completed_at)
        last = await self.read_last(view)
        if last is None:
            return view.show("in_progress" if places else "idle", None)
        turn = last.to_turn()
        if turn.status is TurnStatus.awaiting_input:
            actions = await self.find_actions(view, last)
            return view.show("requires_action" if actions else "in_progress", active_time(turn), actions)
        runs = places or turn.status is TurnStatus.in_progress
        return view.show("in_progress" if runs else "idle", active_time(turn))

    async def find_ending(self, view: SessionView) -> RunOutcome | None:
        """Return how the last turn of a session has ended, with one read; None if it must be read itself."""
        last = view.record.last
        if last is None or view.record.lease_turn is not None:
            return None
        ending = await self.store.turns.get_ending(self.tenant, view.agent_id, view.session_id, last)
        return None if ending is None or ending.status is RunStatus.awaiting_input else ending

    async def read_last(self, view: SessionView) -> StoredTurn | None:
        """Return the last turn of a session. Raises NotFound if the session was deleted."""
        ids = self.tenant, view.agent_id, view.session_id
        turns, _ = await self.store.turns.page(*ids, limit=1)
        if not turns:
            return None
        return await mark_interrupted(self.store, self.tenant, view.agent_id, view.record, turn=turns[0])

    async def find_last_turn(self, session: SessionInput) -> str:
        """Return the id of the last turn of a session. Raises NotFound if it has none, or was deleted."""
        last = (await self.store.sessions.get(*session.ids)).last
        if last is None:
            raise NotFound("Turn", "")
        return last.turn_id

    async def find_actions(self, view: SessionView, last: StoredTurn) -> list[RequiredAction]:
        """Return what the last turn waits for, without the calls whose results have arrived."""
        turn = last.to_turn()
        place = PausedTurn(self.tenant, view.agent_id, view.session_id, turn.turn_id)
        arrived = {each.call_id for each in await self.store.call_results.read(place)}
        left = [call for call in unanswered_calls(turn.steps) if call.call_id not in arrived]
        answer = turn.output_message.model_copy(update={"tool_calls": left})
        shown = turn.model_copy(update={"output_message": answer})
        return required_actions(shown, view.labels_of(last), turn.pending_approvals or ())

    async def list(self, window: Window, agent_id: str | None) -> Page[AgentSessionObject]:
        """Return sessions of an agent, or of all, by creation. A page is not empty while others are found.

        Raises NotFound if there is no such agent, or for an invalid id.
        """
        if agent_id is not None:
            await self.agents.require(agent_id)
        for _ in range(ROUNDS):
            found = await self.find(agent_id, window)
            each_shown = await map_concurrently(
                lambda listed: self.show_listed(*listed), found.data, calls=SESSIONS_AT_ONCE
            )
            shown = [each for each in each_shown if each is not None]
            if shown or not found.has_more:
                break
            window = replace(window, after=found.position)
        return Page(shown, found.has_more, found.position)

    async def find(self, agent_id: str | None, window: Window) -> Page[ListedSession]:
        """Return the ids of sessions as `list`, some of which may be deleted."""
        if window.metadata:
            part = await self.store.metadata_index.find_sessions(self.tenant, window, agent_id)
            return Page(part.sessions, part.more, part.position)
        if agent_id is None:
            listed, more = await self.store.session_index.list(
                self.tenant, after=window.after, limit=window.limit or MAX_ENTRIES, newest_first=window.newest_first
            )
            return Page(listed, more, listed[-1].session_id if listed else window.after)
        page = await self.store.sessions.list(self.tenant, agent_id, window)
        ids = [ListedSession(agent_id, each.session_id) for each in page.data]
        return Page(ids, page.has_more, page.position)

    async def show_listed(self, agent_id: str, session_id: str) -> AgentSessionObject | None:
        """Return a session of a list; None if it was deleted meanwhile."""
        try:
            return await self.show(await self.read(agent_id, session_id))
        except NotFound:
            return None


def active_time(turn: Turn) -> datetime:
    """Return the time at which a turn has shown activity last."""
    return turn.completed_at or turn.started_at
