"""The vaults of a session, as its MCP servers get them."""

from collections.abc import Sequence

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs, OfferedVaults, ServerWithVaults
from stint.tools.port import MCP_SERVER


def offer_vaults(config: AgentConfig, vault_ids: Sequence[str], owner: str) -> AgentConfig:
    """Return the configuration of a session's turns, whose MCP servers may have credentials in vaults.

    `owner` is the hash of the session's end user, empty without one.
    """
    offered = OfferedVaults(ids=[*vault_ids], owner=owner)

    def offer(group: AgentToolGroup) -> AgentToolGroup:
        if not isinstance(group, AgentToolGroupWithArgs) or group.name != MCP_SERVER:
            return group
        return ServerWithVaults(**dict(group), vaults=offered)

    return config.model_copy(update={"toolgroups": [offer(group) for group in config.toolgroups]})
