"""Wire objects of MCP, with the names of the protocol. Fields that are null are not written.

One class serves both revisions: the fields of the newer one (`resultType`, `ttlMs`, `cacheScope`) are null in answers
to the older one.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from stint.domain.call_depth import DEPTH_KEY
from stint.domain.ids import PATTERN
from stint.domain.schema import Schema
from stint.domain.session_budgets import SessionBudget

BUDGET_KEY = "stint/budget"
"""The key of `_meta` with the budget of a session that the call creates."""

LONGEST_NAME, LONGEST_CURSOR, LONGEST_TOKEN = 128, 64, 256
LONGEST_STATE = 1_000_000
"""Maximum characters of a request's state, which has the calls that a turn waits for."""

MOST_RESPONSES = 1_000
"""Maximum answers of a request: a turn waits for no more calls."""

Token = StrictStr | StrictInt


class McpObject(Schema):
    """A wire object. Its attributes have the names of Python."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class StrictObject(McpObject):
    """Arguments of a tool, all of which are known: a misspelled one is an error, as the tool's schema says."""

    model_config = ConfigDict(extra="forbid")


class CallMeta(McpObject):
    """The `_meta` of a call: the protocol's token of progress, and what is Stint's."""

    progress_token: Annotated[StrictStr, Field(max_length=LONGEST_TOKEN)] | StrictInt | None = None
    budget: SessionBudget | None = Field(default=None, alias=BUDGET_KEY)
    call_depth: Any = Field(default=None, alias=DEPTH_KEY)


class CallArguments(StrictObject):
    """The arguments of each tool."""

    message: Annotated[StrictStr, Field(min_length=1)]
    session_id: Annotated[StrictStr, Field(pattern=PATTERN.pattern)] | None = Field(default=None, alias="session_id")


class ElicitResult(McpObject):
    """The answer of a user to a request for input."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def empty_if_null(value: Any) -> Any:
    return {} if value is None else value


class CallParams(McpObject):
    """The parameters of `tools/call`."""

    name: Annotated[StrictStr, Field(max_length=LONGEST_NAME)]
    arguments: Annotated[CallArguments, BeforeValidator(empty_if_null)]
    meta: Annotated[CallMeta, BeforeValidator(empty_if_null)] = Field(default_factory=CallMeta, alias="_meta")
    input_responses: Annotated[dict[str, ElicitResult], Field(max_length=MOST_RESPONSES)] | None = None
    request_state: Annotated[StrictStr, Field(max_length=LONGEST_STATE)] | None = None


class ListParams(McpObject):
    """The parameters of `tools/list`."""

    cursor: Annotated[StrictStr, Field(max_length=LONGEST_CURSOR)] | None = None


class CancelledParams(McpObject):
    """The parameters of `notifications/cancelled`."""

    request_id: Token


class ServedResult(McpObject):
    """A result. Those of the newer revision have a type and name the server."""

    result_type: Literal["complete", "input_required"] | None = None
    meta: dict[str, Any] | None = Field(default=None, alias="_meta")


class CacheableResult(ServedResult):
    """A result that depends on the caller. It may be kept for `ttl_ms` milliseconds."""

    ttl_ms: int | None = None
    cache_scope: Literal["private"] | None = None


class DiscoverResult(CacheableResult):
    supported_versions: list[str]
    capabilities: dict[str, Any]
    instructions: str


class InitializeResult(ServedResult):
    protocol_version: str
    capabilities: dict[str, Any]
    server_info: dict[str, Any]
    instructions: str


class ToolAnnotations(McpObject):
    """Hints about a tool: what an agent does depends on its own tools."""

    title: str | None = None
    open_world_hint: bool = True


class ServedTool(McpObject):
    """An agent as a tool."""

    name: str
    title: str | None = None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    annotations: ToolAnnotations = Field(default_factory=ToolAnnotations)


class ServedToolPage(CacheableResult):
    """A page of the tools, and the cursor of the next one."""

    tools: list[ServedTool]
    next_cursor: str | None = None


class TextBlock(McpObject):
    type: Literal["text"] = "text"
    text: str


class CallUsage(McpObject):
    """The tokens of a turn."""

    model_config = ConfigDict(alias_generator=None)

    input_tokens: int
    output_tokens: int
    total_tokens: int


class CallOutcome(McpObject):
    """The structured result of each tool. `usage` is missing if the model's provider counted nothing."""

    model_config = ConfigDict(alias_generator=None)

    session_id: str
    turn_id: str
    usage: CallUsage | None = None


class ToolCallResult(ServedResult):
    """The result of a call that has ended, or of one that waits and cannot ask its client."""

    content: list[TextBlock]
    structured_content: CallOutcome
    is_error: bool = False


class FormParams(McpObject):
    """The form that a client shows its user."""

    mode: Literal["form"] = "form"
    message: str
    requested_schema: dict[str, Any]


class FormRequest(McpObject):
    method: Literal["elicitation/create"] = "elicitation/create"
    params: FormParams


class InputRequiredResult(ServedResult):
    """The result of a call that waits for its client. The call is repeated with the answers and the state."""

    input_requests: dict[str, FormRequest]
    request_state: str


class ProgressParams(McpObject):
    """The parameters of `notifications/progress`. `progress` grows with each."""

    progress_token: Token
    progress: int
    message: str


class ResourceDocument(Schema):
    """The metadata of a protected resource (RFC 9728)."""

    resource: str
    resource_name: str = "Stint agents"
    authorization_servers: list[str]
    scopes_supported: list[str]
    bearer_methods_supported: list[str] = ["header"]


INPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "message": {"type": "string", "minLength": 1, "description": "What to say to the agent."},
        "session_id": {
            "type": "string",
            "pattern": f"^{PATTERN.pattern}$",
            "description": "The session to continue, from an earlier result. Without it, a new session begins.",
        },
    },
    "required": ["message"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string", "description": "The session, which a later call continues with this id."},
        "turn_id": {"type": "string", "description": "The turn that answered."},
        "usage": {
            "type": "object",
            "description": "The tokens of the turn, if the model's provider counted them.",
            "properties": {key: {"type": "integer"} for key in ("input_tokens", "output_tokens", "total_tokens")},
            "required": ["input_tokens", "output_tokens", "total_tokens"],
        },
    },
    "required": ["session_id", "turn_id"],
}
