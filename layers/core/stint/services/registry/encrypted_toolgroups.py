"""Storage of toolgroups whose credentials are encrypted."""

from stint.domain.content import URL
from stint.domain.llama_stack.registrations import Owner, ToolGroup, ToolGroupRegisterRequest, without_marks
from stint.services.registry.catalogue import Registered, toolgroup_of
from stint.services.registry.registry import Registry
from stint.services.registry.tools import as_port
from stint.tools.encrypted_credentials import EncryptedCredentials


async def store_toolgroup(
    registry: Registry, credentials: EncryptedCredentials, request: ToolGroupRegisterRequest, *, names_secret: bool
) -> ToolGroup:
    """Register a toolgroup, and return it as it was sent; see `Registry.register`.

    Its credentials are encrypted before. The same toolgroup may be registered again.

    Raises:
        InvalidRequest: its credentials are too long.
        StoreUnavailable: they cannot be encrypted.
    """
    toolgroup = toolgroup_of(request, Owner())

    async def is_equal(known: Registered, _: Registered) -> bool:
        if isinstance(known, ToolGroup) and known.sealed:
            known = await decrypt_toolgroup(known, credentials)
        return without_marks(known) == without_marks(toolgroup)

    encrypted = await encrypt_toolgroup(toolgroup, credentials)
    stored = await registry.register("tool_group", encrypted, is_equal=is_equal, names_secret=names_secret)
    return toolgroup.model_copy(update={"owner": stored.owner, "override": stored.override})


async def encrypt_toolgroup(toolgroup: ToolGroup, credentials: EncryptedCredentials) -> ToolGroup:
    """Return a toolgroup with encrypted credentials. Without a key, or without credentials, it is unchanged."""
    encrypted = await credentials.encrypt(as_port(toolgroup))
    if not encrypted.sealed:
        return toolgroup
    endpoint = encrypted.mcp_endpoint and URL(uri=encrypted.mcp_endpoint)
    update = {"args": encrypted.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": encrypted.sealed}
    return toolgroup.model_copy(update=update)


async def decrypt_toolgroup(toolgroup: ToolGroup, credentials: EncryptedCredentials) -> ToolGroup:
    """Return a toolgroup with its credentials. Raises StoreUnavailable."""
    decrypted = await credentials.decrypt(as_port(toolgroup))
    endpoint = decrypted.mcp_endpoint and URL(uri=decrypted.mcp_endpoint)
    update = {"args": decrypted.config or toolgroup.args, "mcp_endpoint": endpoint, "sealed": None}
    return toolgroup.model_copy(update=update)
