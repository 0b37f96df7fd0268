"""Masking of the credentials of agents for the API, and of turns for the store."""

import asyncio
from collections.abc import Sequence

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.agents import Agent, AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.tools.masking import mask, refuse_masked

NOT_KEPT = (
    "The turn's toolgroups had credentials in their args, which are not kept because it has no client tools. Start a "
    "new turn, or send the credentials in the provider data."
)


NOT_STORED = (
    "The toolgroups of the turn had credentials in their args, which are not stored while it waits, and its request "
    "has ended. Send it again with a stream, or send the credentials in the provider data or the agent's configuration."
)


def masked_agent(agent: Agent) -> Agent:
    """Return an agent without the credentials in the args of its toolgroups and in the metadata of its tools."""
    config = agent.agent_config
    toolgroups = masked_toolgroups(config.toolgroups)
    tools = [tool.model_copy(update={"metadata": mask(tool.metadata)}) for tool in config.client_tools]
    shown = config.model_copy(update={"toolgroups": toolgroups, "client_tools": tools})
    return agent.model_copy(update={"agent_config": shown})


def masked_toolgroups(toolgroups: Sequence[AgentToolGroup]) -> list[AgentToolGroup]:
    """Return toolgroups without the credentials in their args."""
    return [
        group if isinstance(group, str) else group.model_copy(update={"args": mask(group.args), "sealed": None})
        for group in toolgroups
    ]


def refuse_masked_args(toolgroups: Sequence[AgentToolGroup], param: str) -> None:
    """Refuse args that were copied from a response, whose credentials are masked. Raises InvalidRequest.

    Those of a stored configuration have masks in place of the encrypted credentials.
    """
    for index, group in enumerate(toolgroups):
        if isinstance(group, AgentToolGroupWithArgs) and not group.sealed:
            refuse_masked(group.args, f"{param}[{index}].args")


async def storable(overrides: TurnOverrides, agent: AgentConfig, *, asks: bool = False) -> TurnOverrides:
    """Return the overrides of a turn as they are stored.

    Only a turn with client tools, or one that `asks` for approvals, waits for its client.
    """
    client_tools = agent.client_tools if overrides.client_tools is None else overrides.client_tools
    # Only a turn that waits needs the credentials again, so only there are they worth the risk of storing them.
    if client_tools or asks or all(isinstance(group, str) for group in overrides.toolgroups):
        return overrides
    masked = await asyncio.to_thread(masked_toolgroups, overrides.toolgroups)
    return overrides.model_copy(update={"toolgroups": masked})


def refuse_unstored_args(overrides: TurnOverrides) -> None:
    """Refuse a turn that waited, and whose credentials were not stored. Raises InvalidRequest."""
    try:
        refuse_masked_args(overrides.toolgroups, "toolgroups")
    except InvalidRequest as error:
        raise InvalidRequest(NOT_STORED, param="toolgroups") from error


def kept_overrides(turn: StoredTurn) -> TurnOverrides:
    """Return the overrides of a turn that is resumed. Raises InvalidRequest if their credentials were not stored."""
    try:
        refuse_masked_args(turn.header.overrides.toolgroups, "toolgroups")
    except InvalidRequest as error:
        raise InvalidRequest(NOT_KEPT, param="toolgroups") from error
    return turn.header.overrides
