"""Storing of toolgroups whose credentials are encrypted."""

from stint.domain.content import URL
from stint.domain.errors import Conflict
from stint.domain.llama_stack.registrations import Owner, ToolGroup, ToolGroupRegisterRequest
from stint.services.registry.catalogue import toolgroup_of
from stint.services.registry.registry import Registry
from stint.services.registry.tools import as_port
from stint.tools.sealed_credentials import SealedCredentials


async def store_toolgroup(
    registry: Registry, credentials: SealedCredentials, request: ToolGroupRegisterRequest
) -> ToolGroup:
    """Register a toolgroup, and return it as it was sent; see `Registry.register`.

    Its credentials are encrypted before. The same toolgroup may be registered again.

    Raises:
        InvalidRequest: its credentials are too long.
        StoreUnavailable: they cannot be encrypted.
    """
    toolgroup = toolgroup_of(request, Owner())
    try:
        await registry.register("tool_group", await seal(toolgroup, credentials))
    except Conflict:
        stored = (await registry.catalogue(fresh=True)).toolgroups.get(toolgroup.identifier)
        if stored is None or not stored.sealed or await unseal(stored, credentials) != toolgroup:
            raise
    return toolgroup


async def seal(toolgroup: ToolGroup, credentials: SealedCredentials) -> ToolGroup:
    """Return a toolgroup with encrypted credentials. Without a key, or without credentials, it is unchanged."""
    sealed = await credentials.seal(as_port(toolgroup))
    if not sealed.sealed:
        return toolgroup
    endpoint = sealed.mcp_endpoint and URL(uri=sealed.mcp_endpoint)
    update = {"args": sealed.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": sealed.sealed}
    return toolgroup.model_copy(update=update)


async def unseal(toolgroup: ToolGroup, credentials: SealedCredentials) -> ToolGroup:
    """Return a toolgroup with its credentials. Raises StoreUnavailable."""
    opened = await credentials.open(as_port(toolgroup))
    endpoint = opened.mcp_endpoint and URL(uri=opened.mcp_endpoint)
    update = {"args": opened.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": None}
    return toolgroup.model_copy(update=update)
