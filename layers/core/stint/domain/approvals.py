"""Approvals: which calls of tools that the server runs wait for the client.

The forms are those of the MCP tools of OpenAI's Responses API. Other tools have them as an extension of this server.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from stint.domain.fields import Nothing, Omitted, UnsupportedField
from stint.domain.limits import ServerToolNames
from stint.domain.schema import Request


class McpToolFilter(Request):
    """A filter of a server's tools by their names."""

    tool_names: Omitted[ServerToolNames] = None
    read_only: Annotated[
        Nothing, UnsupportedField("Servers' hints about their tools are not trusted. List the tool_names")
    ] = None

    def matches(self, *names: str) -> bool:
        """Return whether a tool matches by one of its names. An empty filter matches every tool."""
        return self.tool_names is None or any(name in self.tool_names for name in names)


class McpApprovalFilter(Request):
    """The calls that wait for approval. A tool in neither list does, unless only `always` is set."""

    always: Omitted[McpToolFilter] = None
    never: Omitted[McpToolFilter] = None

    @property
    def named(self) -> list[str]:
        """Return the names of the tools in the lists."""
        return [name for each in (self.always, self.never) if each is not None for name in each.tool_names or ()]


ApprovalMode = Omitted[Literal["always", "never"]]
"""Whether each call of a tool waits, as an extension of this server. OpenAI's hosted tools never do."""
ApprovalRequestId = Omitted[str]
"""The id of the approval request of a call that waited, as `mcp_call` items have it."""


def form_of_approval(value: Any) -> str:
    return "mode" if isinstance(value, str) else "filter"


Approval = Annotated[
    Annotated[Literal["always", "never"], Tag("mode")] | Annotated[McpApprovalFilter, Tag("filter")],
    Discriminator(form_of_approval),
]


class ToolgroupApproval(Request):
    """The approval among the args of a toolgroup."""

    require_approval: Approval = "never"


def needs_approval(approval: Literal["always", "never"] | McpApprovalFilter, *names: str) -> bool:
    """Return whether a call of a tool, which may have several names, waits for the client's approval."""
    if not isinstance(approval, McpApprovalFilter):
        return approval == "always"
    always, never = approval.always, approval.never
    if always is not None and always.matches(*names):
        return True
    if never is not None:
        return not never.matches(*names)
    return always is None
