"""Toolgroups that an agent or a turn defines itself, in place of a registration.

Nobody has registered them, so they may name no secrets. Args are checked when an agent is created, and again by each
turn, whose own toolgroups are checked nowhere else.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from stint.domain.content import URL
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.mcp_servers import InlineMcpServer, refuse_size, size_of_credentials
from stint.domain.tools import AgentToolGroup, AgentToolGroupWithArgs, OfferedVaults
from stint.domain.validation import describe_faults
from stint.tools.port import MCP, MCP_SERVER, REMOTE_EXECUTION

OF_SERVER = ("server_label", "server_url", "required", "credential_id")
"""The args of an inline server that do not configure its provider."""


def define_toolgroup(args: Mapping[str, Any]) -> ToolGroup:
    """Return a toolgroup of the endpoints that an agent's args define. Equal args have equal identifiers."""
    digest = sha256(json.dumps(args, sort_keys=True).encode()).hexdigest()[:16]
    return ToolGroup(
        identifier=f"{REMOTE_EXECUTION}/{digest}",
        provider_resource_id=REMOTE_EXECUTION,
        provider_id="remote-execution",
        args=dict(args),
    )


def find_servers(groups: Iterable[AgentToolGroup]) -> list[tuple[int, AgentToolGroupWithArgs]]:
    """Return the MCP servers among some toolgroups, with their places."""
    named = ((place, group) for place, group in enumerate(groups) if isinstance(group, AgentToolGroupWithArgs))
    return [(place, group) for place, group in named if group.name == MCP_SERVER]


def read_server(args: Mapping[str, Any], param: str = "toolgroups") -> InlineMcpServer:
    """Read the args of an MCP server. Raises InvalidRequest, with `param` as the field that has them."""
    try:
        return InlineMcpServer.model_validate(args)
    except ValidationError as error:
        message = f"The args of the toolgroup {MCP_SERVER!r} are malformed: {describe_faults(error)}"
        raise InvalidRequest(message, param=param) from None


def refuse_conflicts(servers: Iterable[InlineMcpServer], param: str = "toolgroups") -> None:
    """Refuse servers of an agent or a turn with one label, or with too long credentials. Raises InvalidRequest."""
    labels, size = set[str](), 0
    for server in servers:
        if server.server_label in labels:
            raise InvalidRequest(f"Two MCP servers have the label {server.server_label!r}. Rename one.", param=param)
        labels.add(server.server_label)
        size += size_of_credentials(server.headers, server.authorization)
    try:
        refuse_size(size)
    except PydanticCustomError as error:
        raise InvalidRequest(error.message(), param=param) from None


def define_server(
    server: InlineMcpServer, args: Mapping[str, Any], sealed: str | None = None, vaults: OfferedVaults | None = None
) -> ToolGroup:
    """Return the toolgroup of an MCP server. `sealed` has the encrypted credentials of its args.

    `vaults` are those of the session, in which its credential may be.
    """
    if vaults is None and server.credential_id is not None:
        vaults = OfferedVaults(ids=[])  # in which the credential is missing
    if vaults is not None:
        vaults = vaults.model_copy(update={"credential_id": server.credential_id})
    return ToolGroup(
        identifier=f"{MCP_SERVER}/{server.server_label}",
        provider_resource_id=MCP_SERVER,
        provider_id=MCP,
        mcp_endpoint=URL(uri=server.server_url),
        args={name: value for name, value in args.items() if name not in OF_SERVER},
        sealed=sealed,
        vaults=vaults,
    )
