"""Inputs of the model calls of turns, rebuilt by the code that made them.

The messages of a model call depend on stored turns alone, whichever process makes them. So they are made again as in
the turn: the history as it was when the turn started, or when it was last resumed, and then the turn's own records
before the step. The history is cut again where its size was measured then, which is why the log is read up to that
record. The plan is made of the agent's configuration, which never changes, and of the turn's overrides.

    what has changed since                        the answer
    the agent or the session was deleted          404
    a toolgroup, an MCP server or a shield        the tools are not known, if they cannot be listed; otherwise those
                                                  that are listed now, which `unknown` says
    STINT_HISTORY_BYTES                           is cut at the limit that holds now
"""

import asyncio
from typing import TYPE_CHECKING, cast

from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, NotFound, StintError
from stint.domain.inference import to_options, to_tier
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.model_inputs import ModelInput
from stint.domain.steps import InferenceStep
from stint.domain.tools import ToolConfig
from stint.loop.next_step import called_tools
from stint.loop.plan import Plan
from stint.loop.run import Log, Run
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.services.agents.masking import refuse_masked_args
from stint.services.registry.tool_schemas import signature_of
from stint.services.runs.shown_inputs import RebuiltCall, show_call
from stint.services.turns.history import add_turn
from stint.services.turns.planner import override, write_instructions
from stint.services.turns.session_transcript import SessionTranscript
from stint.services.turns.turns import Turns
from stint.store.parallel import value_of
from stint.tools.masking import secrets_in
from stint.tools.port import BUILT_IN, CallerSession, ProviderData
from stint.tools.redaction import secrets_of_caller

if TYPE_CHECKING:
    from stint.models.port import ChatModel

NOT_INFERENCE = "Step {step_id} is a {step_type} step. Only an inference step has an input of the model."


@dataclass(frozen=True, slots=True)
class StepInputs:
    """The inputs of the model calls of a tenant's turns."""

    turns: Turns

    async def read(
        self,
        agent_id: str,
        session_id: str,
        turn_id: str,
        step_id: str,
        start_index: int,
        provider_data: ProviderData,
    ) -> ModelInput:
        """Return the input of a model call, with a page of its messages from `start_index` on. Raises as `rebuild`."""
        call = await self.rebuild(agent_id, session_id, turn_id, step_id, provider_data=provider_data)
        return await asyncio.to_thread(show_call, call, start_index)

    async def rebuild(
        self, agent_id: str, session_id: str, turn_id: str, step_id: str, provider_data: ProviderData
    ) -> RebuiltCall:
        """Return a model call as it was made.

        Raises:
            NotFound: there is no such agent, session, turn or step.
            InvalidRequest: the step is none of the model.
        """
        turns, tenant = self.turns, self.turns.tenant
        found, session, stored = await asyncio.gather(
            turns.agents.config(agent_id),
            turns.store.sessions.get(tenant, agent_id, session_id),
            self.find_turn(agent_id, session_id, turn_id),
            return_exceptions=True,
        )
        config, _, turn = value_of(found), value_of(session), value_of(stored)
        count = place_of(turn, step_id)
        before = StoredTurn(turn.header, turn.records[:count])
        transcript, is_cut = await self.read_transcript(agent_id, session_id, before)
        plan, unknown = await self.make_plan(config, turn.header.overrides, provider_data, agent_id, session_id)
        run = Run(turn.header.turn_id, plan or bare_plan(config, turn.header.overrides), transcript, NO_LOG, 0.0)
        run.iterations = sum(isinstance(step, InferenceStep) for step in before.steps)
        run.called = called_tools(before.steps)
        return RebuiltCall(
            step_id=step_id,
            model=config.model,
            request=run.next_request(),
            toolbox=run.plan.toolbox,
            secrets=secrets_of_caller(provider_data) | secrets_of_groups(config, turn.header.overrides),
            is_history_cut=is_cut,
            has_tools=plan is not None,
            unknown=unknown,
        )

    async def find_turn(self, agent_id: str, session_id: str, turn_id: str) -> StoredTurn:
        """Return a turn, or the one that has a message with the id. Raises NotFound."""
        read = self.turns.store.turns.get
        try:
            return await read(self.turns.tenant, agent_id, session_id, turn_id)
        except NotFound:
            owner = (await self.turns.get(agent_id, session_id, turn_id)).turn_id
            return await read(self.turns.tenant, agent_id, session_id, owner)

    async def read_transcript(self, agent_id: str, session_id: str, turn: StoredTurn) -> tuple[Transcript, bool]:
        """Return the messages before the next model call of a turn, and whether older ones were omitted.

        `turn` has the records up to that call.
        """
        opener, ids = self.turns.opener, (self.turns.tenant, agent_id, session_id)
        resumed = resumed_at(turn)
        history = await self.turns.store.turns.history(
            *ids,
            max_bytes=opener.history_bytes,
            until=(turn.header.turn_id, resumed),
            segments=False,
        )
        past = opener.refit(SessionTranscript.of(history))
        hidden = resumed is None and opener.hides(past)
        if resumed is not None:
            return replace(past, last=turn).transcript(), not past.complete
        transcript = Transcript() if hidden else past.transcript(without=turn.header.retry_of)
        add_turn(transcript, turn)
        return transcript, hidden or not past.complete

    async def make_plan(
        self,
        config: AgentConfig,
        overrides: TurnOverrides,
        provider_data: ProviderData,
        agent_id: str,
        session_id: str,
    ) -> tuple[Plan | None, list[str]]:
        """Return the plan of a turn, and what is not sure about it; None if it cannot be made any more."""
        try:
            refuse_masked_args(overrides.toolgroups, "toolgroups")
            caller = CallerSession(agent_id, session_id)
            plan = await self.turns.planner.plan(config, overrides, provider_data, caller)
        except StintError as error:
            return None, [f"The tools of the model, and what its instructions say of them: {error.message}"]
        groups = {tool.toolgroup.toolgroup_id for tool in plan.toolbox.server.values()}
        changing = sorted(group for group in groups if not group.startswith(BUILT_IN))
        told = f"Whether these toolgroups have changed since; their tools are listed now: {', '.join(changing)}"
        return plan, [told] if changing else []


def secrets_of_groups(config: AgentConfig, overrides: TurnOverrides) -> set[str]:
    """Return the credentials in the args of the toolgroups of an agent and a turn.

    Encrypted ones are known after the tools are listed.
    """
    groups = [each for each in (*config.toolgroups, *overrides.toolgroups) if not isinstance(each, str)]
    return {secret for group in groups if not group.sealed for secret in secrets_in(group.args)}


NO_LOG = cast("Log", None)
"""The log of a run that only makes a request."""


def place_of(turn: StoredTurn, step_id: str) -> int:
    """Return the number of records before a model call.

    Raises:
        NotFound: there is no such step.
        InvalidRequest: it is another step.
    """
    for place, record in enumerate(turn.records):
        for step in (record.step, record.unfinished):
            if step is not None and step.step_id == step_id:
                if step.step_type != "inference":
                    told = NOT_INFERENCE.format(step_id=step_id, step_type=step.step_type)
                    raise InvalidRequest(told, code="step_without_input", param="step_id")
                return place
    other = next((step for step in turn.steps if step.step_id == step_id), None)
    if other is not None:
        told = NOT_INFERENCE.format(step_id=step_id, step_type=other.step_type)
        raise InvalidRequest(told, code="step_without_input", param="step_id")
    raise NotFound("Step", step_id)


def resumed_at(turn: StoredTurn) -> int | None:
    """Return the number of records before a turn was last resumed; None if it was not."""
    ended = [place for place, record in enumerate(turn.records, 1) if record.ending is not None]
    return ended[-1] if ended else None


def bare_plan(config: AgentConfig, overrides: TurnOverrides) -> Plan:
    """Return the plan of a turn without what the registry has: its model, its server tools, and its shields.

    Nothing but requests can be made of it.
    """
    merged = override(config, overrides)
    toolbox = Toolbox({tool.name: signature_of(tool) for tool in merged.client_tools})
    return Plan(
        model=cast("ChatModel", None),
        model_id=merged.model,
        instructions=write_instructions(merged, toolbox.signatures),
        decoding=merged.sampling_params.to_decoding(),
        tool_config=ToolConfig(),
        toolbox=toolbox,
        max_infer_iters=1,
        response_format=merged.response_format,
        answer_schema=None,
        reasoning=to_options(merged.reasoning),
        verbosity=merged.verbosity,
        service_tier=to_tier(merged.service_tier),
    )
