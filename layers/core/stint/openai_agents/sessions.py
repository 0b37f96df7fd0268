"""Sessions of OpenAI's Agents API: create, update, delete, and send events.

A session gets its agent in one of three ways. In each of them, later changes of the saved agent do not reach it:

    agent_id alone           the session runs with what the agent is now (`Sessions.create`)
    agent_id and agent       a copy of that with the fields of `agent`, in the session's settings
    agent alone              an agent of its own, in no list, which is deleted with it

All events of a request are checked before the first one is stored. Then they are taken in this order: messages, which
can still be refused; results, which let a waiting turn go on; a cancellation.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stint.caller import find_attempt
from stint.dataclasses import dataclass, replace
from stint.documents.document_reader import PlacedImage
from stint.domain.errors import Conflict, InvalidRequest
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.sessions import SessionSettings
from stint.domain.llama_stack.turns import ToolApproval, TurnCreateRequest
from stint.domain.messages import UserMessage
from stint.domain.schema import now
from stint.domain.session_budgets import SessionBudget
from stint.domain.tools import AgentToolGroupWithArgs, ToolResponse
from stint.log_keys import add_log_keys
from stint.openai_agents.agents import to_session_config, update_session_config
from stint.openai_agents.contents import images_of_events, images_of_messages, to_content, to_messages
from stint.openai_agents.schemas.contents import AgentInputMessage
from stint.openai_agents.schemas.sessions import (
    ApprovalEvent,
    CancelEvent,
    MessageEvent,
    PostedEvent,
    SessionCreateParams,
    SessionUpdateParams,
    ToolResultEvent,
)
from stint.openai_agents.session_reader import SessionReader, SessionView
from stint.openai_agents.tool_checks import check_tools
from stint.services.agents.agents import Agents
from stint.services.agents.sessions import OverrideConfig, Sessions
from stint.services.idempotency.creations import Creations
from stint.services.registry.tools import Tools
from stint.services.runs.run_handle import RequestContext
from stint.services.turns.session_input import UNKNOWN_CALL, ClientResult, SessionInput

if TYPE_CHECKING:  # few sessions have vaults
    from stint.services.vaults.vaults import Vaults

FAILED = "error"
"""Key of the metadata of a result without success, whose content is the error."""

NO_MESSAGE = "The tool failed without a message."
"""What the model gets of a result without success that has no error."""


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """The sessions of a tenant."""

    reader: SessionReader
    agents: Agents
    sessions: Sessions
    creations: Creations
    tools: Tools
    get_vaults: "Callable[[], Vaults]"

    async def create(self, params: SessionCreateParams, context: RequestContext) -> SessionView:
        """Create a session with its first message, which another process or a stream takes, and return it.

        A retry gets the session of its first attempt. Raises StintError as `Agents.create` and `accept_message`.
        """
        await self.check_images(images_of_messages(params.input, "input"))
        create = partial(self.create_session, params)
        return await self.reader.read(*await self.start(to_request(params.input), create, context))

    async def start(
        self, request: TurnCreateRequest, create: Callable[[str], Awaitable[str]], context: RequestContext
    ) -> tuple[str, str]:
        """Send the first message to the session that `create` makes, and return the ids of its agent and of itself.

        `create` gets an id, and returns both ids, joined by a colon. Raises StintError as `create`.
        """
        await self.reader.requests.turns.check_input(request)  # before there is a session, which would stay without it
        created = await self.creations.run(self.find_created, create)
        agent_id, session_id = created.split(":")
        add_log_keys(agent_id=agent_id, session_id=session_id)
        session = SessionInput(self.reader.requests, agent_id, session_id)
        # The id of the session may have been renewed, and that of the message is the same.
        await session.accept_message(request, replace(context, attempt=find_attempt()))
        return agent_id, session_id

    async def create_session(self, params: SessionCreateParams, session_id: str) -> str:
        """Create a session, and return the ids of its agent and of itself, joined by a colon."""
        if params.agent_id is None:
            config = to_session_config(None, params.agent)
            await self.check_servers(config)
            return await self.create_with_agent(
                config, session_id, params.metadata, params.vault_ids, budget=params.budget
            )
        override: OverrideConfig | None = None
        if params.agent is not None and params.agent.model_fields_set:
            saved, _ = await self.agents.config_of_new_session(params.agent_id)
            config = to_session_config(saved, params.agent)
            await self.check_servers(config)
            override = partial(replace_config, config=config)
        keeps_model = params.agent is None or params.agent.model is None
        return await self.create_of_agent(
            params.agent_id,
            session_id,
            params.metadata,
            params.vault_ids,
            budget=params.budget,
            override=override,
            keeps_model=keeps_model,
        )

    async def create_with_agent(
        self,
        config: AgentConfig,
        session_id: str,
        metadata: Mapping[str, str],
        vault_ids: list[str],
        budget: SessionBudget | None = None,
    ) -> str:
        """Create a session with an agent of its own, and return the ids as `create_session`."""
        await self.check_vaults(vault_ids)
        create = self.sessions.create_with_agent
        agent_id = await create(config, session_id, metadata, vault_ids=vault_ids, budget=budget)
        return f"{agent_id}:{session_id}"

    async def create_of_agent(
        self,
        agent_id: str,
        session_id: str,
        metadata: Mapping[str, str],
        vault_ids: list[str],
        *,
        budget: SessionBudget | None = None,
        override: OverrideConfig | None = None,
        keeps_model: bool = True,
    ) -> str:
        """Create a session of a saved agent, and return the ids as `create_session`."""
        await self.check_vaults(vault_ids)
        if keeps_model and self.agents.registry.access.is_limited:
            await self.agents.require_model((await self.agents.config_of_new_session(agent_id))[0].model)
        create = partial(self.sessions.create, agent_id, "", session_id=session_id)
        await create(metadata=metadata, override=override, vault_ids=vault_ids, budget=budget)
        return f"{agent_id}:{session_id}"

    async def check_images(self, images: Iterable[PlacedImage]) -> None:
        """Check images, whose fields have the names of this API in the errors. Raises InvalidRequest."""
        await self.reader.requests.turns.reader.check_images(images)

    async def check_vaults(self, vault_ids: list[str]) -> None:
        """Check that a new session may use vaults. Raises InvalidRequest."""
        if vault_ids:
            await self.get_vaults().check_use(vault_ids)

    async def check_servers(self, config: AgentConfig) -> None:
        """Check the MCP servers of a session's agent. Raises InvalidRequest.

        Their credentials are never stored in clear, so a stack without a key for them accepts none.
        """
        await check_tools(config, self.tools, "agent.tools")
        groups = [group for group in config.toolgroups if isinstance(group, AgentToolGroupWithArgs)]
        named = any(group.args.get("authorization") and not group.sealed for group in groups)
        if named and self.agents.credentials.cipher is None:
            raise InvalidRequest(
                "The authorization of an MCP server is stored encrypted, and this stack has no key for that. Ask the "
                "operator to set the parameter CredentialsKeyArn, or register the server as a toolgroup.",
                code="credentials_key_missing",
                param="agent.tools",
            )

    async def find_created(self, session_id: str) -> str:
        """Return the ids of a session that an earlier attempt created. Raises NotFound."""
        agent_id = await self.reader.find_agent(session_id)
        await self.reader.store.sessions.get(self.reader.tenant, agent_id, session_id)
        return f"{agent_id}:{session_id}"

    async def update(self, session_id: str, params: SessionUpdateParams) -> SessionView:
        """Change a session for its later turns, and return it. Raises NotFound, and StintError as `Agents.prepare`."""
        while not await self.try_to_update(session_id, params):
            pass
        return await self.reader.open(session_id)

    async def try_to_update(self, session_id: str, params: SessionUpdateParams) -> bool:
        """Change a session, and return False if it was changed at the same time. Raises as `update`."""
        view = await self.reader.open(session_id)
        given, config = params.model_fields_set, view.config
        if "agent" in given and params.agent is not None:
            config = update_session_config(config, params.agent)
            await self.check_servers(config)
            config = await self.agents.prepare(config)
        metadata = (params.metadata or {}) if "metadata" in given else view.metadata
        settings = SessionSettings(agent=config, metadata=metadata, vault_ids=[*view.vault_ids], updated_at=now())
        return await self.reader.store.sessions.set_settings(self.reader.tenant, view.agent_id, view.record, settings)

    async def delete(self, session_id: str) -> None:
        """Delete a session. A turn that waits for its client is deleted with it.

        Raises:
            NotFound: there is no such session.
            Conflict: a turn runs.
        """
        agent_id = await self.reader.find_agent(session_id)
        running = await self.reader.store.session_leases.find_holder(self.reader.tenant, agent_id, session_id)
        if running is not None:
            message = f"Session {session_id} is running turn {running}. Cancel it with an event first."
            raise Conflict(message, code="session_running")
        await self.sessions.delete(agent_id, session_id)

    async def post(self, session_id: str, events: Sequence[PostedEvent], context: RequestContext) -> None:
        """Accept events. Raises StintError if one is refused; then none is accepted."""
        session = await self.reader.open_input(session_id)
        answers = [to_answer(event) for event in events if isinstance(event, ToolResultEvent)]
        decisions = [to_approval(event) for event in events if isinstance(event, ApprovalEvent)]
        if decisions:
            turn_id = await self.reader.find_last_turn(session)
            answers += [ClientResult(turn_id, decision) for decision in decisions]
        messages = [message for event in events if isinstance(event, MessageEvent) for message in event.input]
        try:
            if answers or messages:  # whoever is stopped may still cancel
                await session.check(answers)
                await self.check_images(images_of_events(events))
            if messages:  # before the results: a message can still be refused
                await session.accept_message(to_request(messages), context)
            if answers:
                await session.accept_results(answers)
        except InvalidRequest as error:
            if error.code != UNKNOWN_CALL:
                raise
            raise InvalidRequest(error.message, code="invalid_request_error") from None
        if any(isinstance(event, CancelEvent) for event in events):
            from stint.services.turns.session_cancellation import cancel_session  # noqa: PLC0415 - few requests cancel

            await cancel_session(session, context.attempt)


def replace_config(_saved: AgentConfig, *, config: AgentConfig) -> AgentConfig:
    return config


def to_request(given: str | Sequence[AgentInputMessage] | None) -> TurnCreateRequest:
    """Return the request of a turn for the input of a session."""
    messages = [UserMessage(content=given)] if isinstance(given, str) else to_messages(given or ())
    return TurnCreateRequest(messages=messages, when_busy="merge")


def to_answer(event: ToolResultEvent) -> ClientResult:
    """Return the result of a call. The error of one without success is what the model gets."""
    content = to_content(event.output) if event.output is not None else ""
    if event.success:
        return ClientResult(event.turn_id, ToolResponse(call_id=event.call_id, tool_name="", content=content))
    metadata = {FAILED: True}
    response = ToolResponse(
        call_id=event.call_id, tool_name="", content=event.error or content or NO_MESSAGE, metadata=metadata
    )
    return ClientResult(event.turn_id, response)


def to_approval(event: ApprovalEvent) -> ToolApproval:
    """Return the decision about a call, whose id is that of the request. A dismissed request is a denied call."""
    reason = "The user dismissed the request." if event.response.decision == "cancel" else None
    decision = event.response.decision == "approve"
    return ToolApproval(call_id=event.request_id, approve=decision, reason=reason, input=event.response.input)
