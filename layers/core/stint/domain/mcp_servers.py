"""MCP servers that a request or an agent names: which of their tools a model may call, and which wait for approval.

The forms are those of OpenAI's Responses API. The types of both APIs have these fields, with defaults of their own.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, StrictBool, Tag, field_validator

from stint.domain.approvals import Approval, McpToolFilter, needs_approval
from stint.domain.fields import MaxEntries, Omitted, invalid
from stint.domain.limits import MAX_HEADERS, ServerToolNames, too_long
from stint.domain.schema import Request
from stint.domain.tools import ToolName


def form_of_filter(value: Any) -> str:
    return "names" if isinstance(value, list) else "filter"


AllowedNames = Annotated[
    Annotated[ServerToolNames, Tag("names")] | Annotated[McpToolFilter, Tag("filter")], Discriminator(form_of_filter)
]


McpHeaders = Annotated[dict[str, str], MaxEntries(100)]


def check_server_url(url: str) -> str:
    """Return the URL of a server. Raises PydanticCustomError for another scheme."""
    if not url.startswith(("https://", "http://")):
        raise invalid("The server_url must begin with https:// or http://.")
    return url


def is_allowed(allowed: Sequence[str] | McpToolFilter | None, name: str) -> bool:
    """Return whether the model may call a tool. None allows all of a server."""
    if allowed is None:
        return True
    return allowed.matches(name) if isinstance(allowed, McpToolFilter) else name in allowed


def size_of_credentials(headers: dict[str, str] | None, authorization: str | None) -> int:
    """Return the number of characters of a server's headers and authorization."""
    return sum(len(name) + len(value) for name, value in (headers or {}).items()) + len(authorization or "")


def refuse_size(size: int) -> None:
    """Refuse headers and authorizations of all servers that are too long together. Raises PydanticCustomError."""
    if size > MAX_HEADERS:
        raise invalid(
            f"The headers and authorizations of the MCP tools have {size:,} characters in total; at most "
            f"{MAX_HEADERS:,} are allowed."
        )


class McpAccess(Request):
    """The access to the tools of a server, in the args of a toolgroup.

    `headers` are sent with each request to the server, and `authorization` as a bearer token.
    """

    headers: Omitted[McpHeaders] = None
    authorization: Omitted[str] = None
    allowed_tools: Omitted[AllowedNames] = None
    require_approval: Approval = "never"

    def allows(self, name: str) -> bool:
        """Return whether the model may call a tool."""
        return is_allowed(self.allowed_tools, name)

    def needs_approval(self, name: str) -> bool:
        """Return whether a call of a tool waits for the client's approval."""
        return needs_approval(self.require_approval, name)

    @property
    def sent_headers(self) -> dict[str, str]:
        """Return the headers of each request to the server."""
        bearer = {"Authorization": f"Bearer {self.authorization}"} if self.authorization else {}
        return {**(self.headers or {}), **bearer}


class InlineMcpServer(McpAccess):
    """The args of `builtin::mcp`: an MCP server that an agent or a turn names without a registration.

    A turn is refused if a `required` server cannot be reached. It runs without the tools of any other one.
    `credential_id` names a credential in the vaults of the session, in place of an authorization.
    """

    model_config = ConfigDict(extra="forbid")

    server_label: ToolName
    server_url: str
    required: StrictBool = False
    credential_id: Omitted[str] = None

    @field_validator("server_url")
    @classmethod
    def check_url(cls, url: str) -> str:
        if fault := too_long("server_url", url):
            raise invalid(fault)
        return check_server_url(url)
