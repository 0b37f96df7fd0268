"""Encryption of the credentials of MCP servers in agents' args, as those of registered toolgroups.

A stored agent has masks in the place of its servers' credentials, and `sealed` with these. Turns decrypt them where
they list or call tools (`stint.tools.secret_references`). Without a key, they are stored as they are.
"""

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs
from stint.services.registry.inline_toolgroups import define_server, find_servers, read_server
from stint.services.registry.selections import as_port
from stint.tools.encrypted_credentials import EncryptedCredentials


async def seal_servers(config: AgentConfig, credentials: EncryptedCredentials) -> AgentConfig:
    """Return a configuration as it is stored.

    Raises:
        InvalidRequest: the args of a server are malformed, or its credentials are too long.
        StoreUnavailable: they cannot be encrypted.
    """
    groups: list[AgentToolGroup] = [*config.toolgroups]
    for place, group in find_servers(groups):
        groups[place] = await seal_server(group, credentials)
    return config.model_copy(update={"toolgroups": groups})


async def seal_server(group: AgentToolGroupWithArgs, credentials: EncryptedCredentials) -> AgentToolGroupWithArgs:
    """Return an MCP server with encrypted credentials, if it has any."""
    if group.sealed:
        return group
    server = read_server(group.args)
    encrypted = await credentials.encrypt(as_port(define_server(server, group.args)))
    if not encrypted.sealed:
        return group
    args = {**group.args, **encrypted.config, "server_url": encrypted.mcp_endpoint}
    return group.model_copy(update={"args": args, "sealed": encrypted.sealed})
