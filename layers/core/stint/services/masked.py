"""What the API shows of agents and registrations that hold credentials."""

from collections.abc import Sequence

from stint.domain.agents import Agent
from stint.domain.content import URL
from stint.domain.registrations import RegisteredShield, ToolGroup
from stint.domain.registry import Model
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.tools.masking import mask, mask_url, refuse_masked


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
    """Refuse args that were read from an answer, whose credentials are masked. Raises InvalidRequest."""
    for index, group in enumerate(toolgroups):
        if isinstance(group, AgentToolGroupWithArgs):
            refuse_masked(group.args, f"{param}[{index}].args")


def masked_toolgroup(group: ToolGroup) -> ToolGroup:
    """Return a toolgroup without the credentials in its args and its endpoint."""
    endpoint = group.mcp_endpoint and URL(uri=mask_url(group.mcp_endpoint.uri, endpoint=True))
    return group.model_copy(update={"args": mask(group.args), "mcp_endpoint": endpoint})


def masked_model(model: Model) -> Model:
    """Return a model without the credentials in its metadata."""
    return model.model_copy(update={"metadata": mask(model.metadata)})


def masked_shield(shield: RegisteredShield) -> RegisteredShield:
    """Return a shield without the credentials in its parameters."""
    return shield.model_copy(update={"params": mask(shield.params)})
