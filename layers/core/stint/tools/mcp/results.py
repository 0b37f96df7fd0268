"""The results of MCP servers, as far as they are read: of tools, of their lists, and of the question for the revision.

Types of our own: those of the `mcp` package, which are of the older revisions only, take 0.2 s of CPU time to import.
"""

from typing import Any, Literal

from pydantic import AnyUrl, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ServerData(BaseModel):
    """Data of a server, whose unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, defer_build=True)


class ContentAnnotations(ServerData):
    audience: list[str] | None = None


class ContentResource(ServerData):
    uri: AnyUrl
    mime_type: str | None = None
    text: str | None = None
    blob: str = ""


class ResultBlock(ServerData):
    """A block of content of any type, with the fields of all of them."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str = ""
    data: str = ""
    mime_type: str | None = None
    uri: AnyUrl | None = None
    name: str = ""
    title: str | None = None
    resource: ContentResource | None = None
    annotations: ContentAnnotations | None = None


class ServerRequest(ServerData):
    """A request that a server sends back in place of a result."""

    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class ServerResult(ServerData):
    """The result of a call: complete, or with the requests that its client has to answer before."""

    result_type: str = "complete"
    content: list[ResultBlock] = Field(default_factory=list)
    structured_content: Any = None
    is_error: bool | None = None
    input_requests: dict[str, ServerRequest] | None = None
    request_state: str | None = None


class ToolHints(ServerData):
    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class OfferedTool(ServerData):
    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any]
    annotations: ToolHints | None = None


class OfferedTools(ServerData):
    """A page of a list. `ttl_ms` says how long it may be used, in milliseconds."""

    tools: list[OfferedTool]
    next_cursor: str | None = None
    ttl_ms: int = Field(default=0, ge=0)


class DiscoveredServer(ServerData):
    supported_versions: list[str]
