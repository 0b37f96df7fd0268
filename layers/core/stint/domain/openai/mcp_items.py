"""Items of MCP servers: tool lists, calls, and approvals."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt

from stint.domain.fields import Omitted
from stint.domain.schema import Request


class McpToolInfo(Request):
    """A listed tool, without what its server did not send. Clients such as the AI SDK refuse null there."""

    name: str
    description: Omitted[str] = None
    input_schema: dict[str, Any] = Field(default_factory=dict)
    annotations: Omitted[dict[str, Any]] = None


class McpListTools(Request):
    """The tools that a server listed. With `error`, it listed none."""

    type: Literal["mcp_list_tools"] = "mcp_list_tools"
    id: str = ""
    server_label: str
    tools: list[McpToolInfo] = Field(default_factory=list)
    error: Omitted[str] = None


class McpError(Request):
    """The error of a call: from the tool (`content`), or from the protocol or HTTP (`code`, `message`)."""

    type: Literal["mcp_tool_execution_error", "mcp_protocol_error", "http_error"]
    content: Omitted[Any] = None
    code: Omitted[StrictInt] = None
    message: Omitted[str] = None


def read_error(error: Any) -> Any:
    """Read a string, which older clients send, as the tool's text."""
    return {"type": "mcp_tool_execution_error", "content": error} if isinstance(error, str) else error


class McpCall(Request):
    """A call of a server's tool that ran here. A failed one has an `error` and no `output`."""

    type: Literal["mcp_call"] = "mcp_call"
    id: str = ""
    server_label: str
    name: str
    arguments: str
    output: str | None = None
    error: Annotated[McpError | None, BeforeValidator(read_error)] = None
    status: Literal["in_progress", "completed", "incomplete", "calling", "failed"] = "completed"
    approval_request_id: Omitted[str] = None


class McpApprovalRequest(Request):
    """A call of a server's tool that waits for the client's approval."""

    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    id: str = ""
    server_label: str
    name: str
    arguments: str


class McpApprovalResponse(Request):
    type: Literal["mcp_approval_response"] = "mcp_approval_response"
    id: str = ""
    approval_request_id: str
    approve: StrictBool
    reason: Omitted[str] = None
