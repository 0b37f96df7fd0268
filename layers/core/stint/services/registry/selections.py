"""Selections: what agents and turns use of toolgroups."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from stint.dataclasses import dataclass
from stint.domain.approvals import Approval, ToolgroupApproval
from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.validation import describe_faults
from stint.tools.port import MCP_SERVER, MODEL_NAMES, REMOTE_EXECUTION, SEARCH_PROVIDERS, Toolgroup

if TYPE_CHECKING:  # few agents name an MCP server without a registration
    from stint.domain.mcp_servers import InlineMcpServer

APPROVAL = "require_approval"
INLINE = (f"{REMOTE_EXECUTION}/", f"{MCP_SERVER}/")
"""How the identifiers of toolgroups begin that agents or turns define themselves."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools that an agent or a turn uses of a toolgroup: all or one. `args` override the model's arguments.

    `server` is the definition of an inline MCP server. Unless it is required, a turn runs without its tools if it
    cannot be reached. `approval` says which of the calls wait for the client.
    """

    toolgroup: ToolGroup
    tool_name: str | None
    args: Mapping[str, Any]
    server: "InlineMcpServer | None" = None
    approval: Approval | None = None

    @property
    def may_ask(self) -> bool:
        """Return whether calls of its tools may wait for approval, or its args say so where they cannot."""
        registered = self.toolgroup.args or {}
        return self.approval is not None or APPROVAL in self.args or APPROVAL in registered


def as_port(group: ToolGroup) -> Toolgroup:
    """Return a registered toolgroup in the form of the port."""
    endpoint = group.mcp_endpoint.uri if group.mcp_endpoint else None
    inline = group.identifier.startswith(INLINE)  # nobody registered it, so it may name no secrets
    return Toolgroup(
        group.identifier,
        group.provider_id,
        endpoint,
        group.args or {},
        sealed=group.sealed or "",
        registered=not inline,
        vaults=group.vaults if inline else None,
    )


def name_for_model(provider_id: str, name: str) -> str:
    """Return the models' name of a tool."""
    return MODEL_NAMES.get(name, name) if provider_id in SEARCH_PROVIDERS else name


def read_approval(args: Mapping[str, Any], param: str) -> Approval:
    """Read the approval among the args that define a toolgroup. Raises InvalidRequest, with `param` as their field."""
    try:
        return ToolgroupApproval.model_validate(args).require_approval
    except ValidationError as error:
        message = f"The args of the toolgroup are malformed: {describe_faults(error)}"
        raise InvalidRequest(message, param=param) from None
