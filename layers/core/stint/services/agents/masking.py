"""Masking of the credentials of agents for the API."""

from collections.abc import Sequence

from stint.domain.llama_stack.agents import Agent
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.tools.masking import mask, refuse_masked


def masked_agent(agent: Agent) -> Agent:
    """Return an agent without the credentials in the args of its toolgroups and in the metadata of its tools."""
    config = agent.agent_config
    toolgroups = [
        group if isinstance(group, str) else group.model_copy(update={"args": mask(group.args)})
        for group in config.toolgroups
    ]
    tools = [tool.model_copy(update={"metadata": mask(tool.metadata)}) for tool in config.client_tools]
    shown = config.model_copy(update={"toolgroups": toolgroups, "client_tools": tools})
    return agent.model_copy(update={"agent_config": shown})


def refuse_masked_args(toolgroups: Sequence[AgentToolGroup], param: str) -> None:
    """Refuse args that were copied from a response, whose credentials are masked. Raises InvalidRequest."""
    for index, group in enumerate(toolgroups):
        if isinstance(group, AgentToolGroupWithArgs):
            refuse_masked(group.args, f"{param}[{index}].args")
