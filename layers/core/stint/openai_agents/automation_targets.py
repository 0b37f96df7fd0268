"""The sessions that automations of OpenAI's Agents API begin, or send messages to.

A target is read once, when an automation is created or changed, and stored as each run needs it:

    in the request    stored                                          each run uses
    agent_id          the id                                          the saved agent as it is then
    agent             its configuration, as that of a saved agent     that, as an agent of the session alone
    input             the messages of a turn                          these
    existing session  the id, and the instructions                    the instructions, as a message of the user

A run acts as its caller, and the same is checked as if this caller had sent the API's request.
"""

from functools import partial

from pydantic import Field

from stint.caller import set_attempt
from stint.dataclasses import dataclass
from stint.domain.fields import Omitted
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.domain.openai.automations import AutomationTarget, ExistingSessionTarget, NewSessionTarget
from stint.domain.schema import Schema
from stint.domain.session_budgets import SessionBudget
from stint.openai_agents.agents import change, new_config, settings_of
from stint.openai_agents.contents import from_content, to_messages
from stint.openai_agents.schemas.automations import (
    AutomationAgentObject,
    AutomationTargetObject,
    ExistingSessionObject,
    ExistingSessionParams,
    NewSessionObject,
    NewSessionParams,
)
from stint.openai_agents.schemas.contents import AgentInputMessage
from stint.openai_agents.session_reader import SessionReader
from stint.openai_agents.sessions import AgentSessions
from stint.openai_agents.tool_checks import check_tools
from stint.run_stop import refuse_stopped
from stint.services.agents.sessions import refuse_agent_of_another
from stint.services.automations.targets import IsOwn, PendingDelivery
from stint.services.runs.run_handle import RequestContext


class SessionPlan(Schema):
    """The sessions that a target begins, as it stores them: with a saved agent, or a configuration."""

    agent_id: Omitted[str] = None
    agent: Omitted[AgentConfig] = None
    messages: list[UserMessage]
    metadata: dict[str, str] = Field(default_factory=dict)
    vault_ids: list[str] = Field(default_factory=list)
    budget: Omitted[SessionBudget] = None

    @property
    def saved_id(self) -> str:
        """The id of the saved agent of a plan without a configuration."""
        return self.agent_id or ""

    @property
    def request(self) -> TurnCreateRequest:
        """The request of the first turn."""
        return TurnCreateRequest(messages=self.messages, when_busy="merge")


@dataclass(frozen=True, slots=True)
class SessionTargets:
    """The targets of a tenant's automations (`stint.services.automations.targets`)."""

    sessions: AgentSessions

    @property
    def reader(self) -> SessionReader:
        return self.sessions.reader

    async def read(self, params: NewSessionParams | ExistingSessionParams) -> AutomationTarget:
        """Return the target of a request as it is stored, with encrypted credentials in the URLs of its servers.

        Raises InvalidRequest, and StintError as `Agents.create`.
        """
        if isinstance(params, ExistingSessionParams):
            return ExistingSessionTarget(session_id=params.session_id, instructions=params.instructions)
        config = None
        if (agent := params.agent) is not None:
            config = change(new_config(agent.model), agent, agent.model_fields_set, "target.agent.")
            await check_tools(config, self.sessions.tools, "target.agent.tools")
            config = await self.sessions.agents.prepare(config)
        plan = SessionPlan(
            agent_id=params.agent_id,
            agent=config,
            messages=to_messages(params.input),
            metadata=params.metadata,
            vault_ids=params.vault_ids,
            budget=params.budget,
        )
        return NewSessionTarget(request=plan.model_dump(mode="json"))

    async def check(self, target: AutomationTarget) -> None:
        """Check a target as the port says."""
        if isinstance(target, ExistingSessionTarget):
            session = await self.reader.open_input(target.session_id)
            await session.check(())
            await session.turns.require_model(session.agent_id, session.session_id)
            return
        plan, agents = read_plan(target), self.sessions.agents
        await self.reader.requests.turns.check_input(plan.request)
        await self.sessions.check_vaults(plan.vault_ids)
        config = plan.agent
        if config is None:
            refuse_agent_of_another(plan.saved_id)
            config, _ = await agents.config_of_new_session(plan.saved_id)
        await agents.require_model(config.model)

    async def refuse_stopped_caller(self) -> None:
        """Refuse a caller whose runs were stopped. Raises Stopped, StoreUnavailable."""
        async with self.reader.requests.turns.meters.watch():
            await refuse_stopped()

    async def create_session(self, target: NewSessionTarget, context: RequestContext) -> str:
        """Create a session as the port says."""
        set_attempt(context.attempt)
        plan = read_plan(target)
        _, session_id = await self.sessions.start(plan.request, partial(self.create_planned, plan), context)
        return session_id

    async def create_planned(self, plan: SessionPlan, session_id: str) -> str:
        """Create a session without its message, and return its ids as `AgentSessions.create_session`."""
        given, budget = (session_id, plan.metadata, plan.vault_ids), plan.budget
        if plan.agent is None:
            return await self.sessions.create_of_agent(plan.saved_id, *given, budget=budget)
        return await self.sessions.create_with_agent(plan.agent, *given, budget=budget)

    async def send(self, target: ExistingSessionTarget, context: RequestContext, is_own: IsOwn) -> None:
        """Store a message as the port says."""
        session = await self.reader.open_input(target.session_id)
        await session.check(())
        # A repetition may find its own message in line behind that of the run before.
        if context.attempt.repeated and await session.has_message(context):
            return
        waiting = await session.list_messages()
        if waiting and await is_own(waiting):
            raise PendingDelivery
        messages = [UserMessage(content=target.instructions)]
        await session.accept_message(TurnCreateRequest(messages=messages, when_busy="merge"), context)


def read_plan(target: NewSessionTarget) -> SessionPlan:
    return SessionPlan.model_validate(target.request)


def from_target(target: AutomationTarget) -> AutomationTargetObject:
    """Convert a target, without the headers of its servers, as those of sessions."""
    if isinstance(target, ExistingSessionTarget):
        return ExistingSessionObject(session_id=target.session_id, instructions=target.instructions)
    plan = read_plan(target)
    return NewSessionObject(
        agent_id=plan.agent_id,
        agent=AutomationAgentObject(**settings_of(plan.agent, shows_headers=False)) if plan.agent else None,
        input=[AgentInputMessage(role="user", content=from_content(message.content)) for message in plan.messages],
        metadata=plan.metadata,
        vault_ids=plan.vault_ids,
        budget=plan.budget,
    )
