"""What callers can register: toolgroups, shields and models. The stored document is the one the API shows."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, Field

from stint.domain.content import URL, Content
from stint.domain.fields import invalid
from stint.domain.limits import MessageLimit, ModelMetadata, PartLimit, ShieldParams, ToolgroupArgs, too_long
from stint.domain.messages import UserMessage
from stint.domain.schema import Request, Schema
from stint.domain.steps import CompletionMessage, SafetyViolation
from stint.domain.tools import ToolParameter, ToolResponseMessage

CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
LONGEST_IDENTIFIER = 1000
"""Bytes of UTF-8: a key of the table has room for these and the kind of the registration."""


def check_identifier(identifier: str) -> str:
    """Refuse what no request could name in its path; clients normalise `.` and `..` there (RFC 3986, 5.2.4)."""
    size = len(identifier.encode())
    if size > LONGEST_IDENTIFIER:
        raise invalid(f"The identifier has {size} bytes in UTF-8; at most {LONGEST_IDENTIFIER} are allowed.")
    if CONTROL_CHARACTERS.search(identifier):
        raise invalid("The identifier has a control character, such as a line break: leave it out.")
    if identifier.endswith("/") or not {".", ".."}.isdisjoint(identifier.split("/")):
        raise invalid("The identifier ends with a slash, or has a part . or .., which paths of URLs cannot name.")
    return identifier


def check_endpoint(endpoint: URL) -> URL:
    if fault := too_long("mcp_endpoint", endpoint.uri):
        raise invalid(fault)
    return endpoint


ModelType = Literal["llm", "embedding"]
Identifier = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(check_identifier)]


class Owner(Schema):
    """Who registered a thing; what the configuration names is owned by nobody."""

    principal: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)


class ToolGroupEntry(Schema):
    """A toolgroup in a list."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["tool_group"] = "tool_group"
    mcp_endpoint: URL | None = None
    args: dict[str, Any] | None = None


class ToolGroup(ToolGroupEntry):
    owner: Owner | None = None


class Tool(Schema):
    """A tool of a toolgroup, its JSON schema flattened to a list of parameters."""

    identifier: str
    provider_resource_id: str | None = None
    provider_id: str
    type: Literal["tool"] = "tool"
    toolgroup_id: str
    description: str
    parameters: list[ToolParameter]
    metadata: dict[str, Any] | None = None


class RuntimeTool(Tool):
    """A tool as the tool runtime lists it: clients read its `name` there, where the registry has `identifier`."""

    name: str


class ToolInvokeRequest(Request):
    tool_name: str
    arguments: dict[str, Any] = Field(validation_alias=AliasChoices("kwargs"))


class ToolInvocationResult(Schema):
    """What a tool answered outside a turn; `error_code` is 1 when it failed."""

    content: Content
    error_message: str | None = None
    error_code: int = 0
    metadata: dict[str, Any] | None = None


class ShieldEntry(Schema):
    """A shield in a list."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["shield"] = "shield"
    params: dict[str, Any] = Field(default_factory=dict)


class RegisteredShield(ShieldEntry):
    owner: Owner | None = None


class ToolGroupRegisterRequest(Request):
    """A toolgroup to register. What `args` holds depends on the provider; see docs/tools.md."""

    toolgroup_id: Identifier
    provider_id: str
    mcp_endpoint: Annotated[URL, AfterValidator(check_endpoint)] | None = None
    args: ToolgroupArgs | None = None


class ShieldRegisterRequest(Request):
    """A shield to register. `provider_shield_id` defaults to `shield_id`; for `params` see docs/shields.md."""

    shield_id: Identifier
    provider_shield_id: str | None = None
    provider_id: str | None = None
    params: ShieldParams = Field(default_factory=dict)


class ModelRegisterRequest(Request):
    """Another name for a model. `provider_model_id` is the provider's own id. An embedding model is listed only."""

    model_id: Identifier
    provider_model_id: str | None = None
    provider_id: str | None = None
    metadata: ModelMetadata = Field(default_factory=dict)
    model_type: ModelType = "llm"


class Configured(Request):
    """What the setting STINT_REGISTRY holds: registrations that are there from the start, owned by nobody."""

    toolgroups: list[ToolGroupRegisterRequest] = Field(default_factory=list)
    shields: list[ShieldRegisterRequest] = Field(default_factory=list)
    models: list[ModelRegisterRequest] = Field(default_factory=list)


class ToolList(Schema):
    data: list[Tool]


class RuntimeToolList(Schema):
    data: list[RuntimeTool]


class ToolGroupList(Schema):
    data: list[ToolGroupEntry]


class ShieldList(Schema):
    data: list[ShieldEntry]


class SystemMessage(Request):
    role: Literal["system"]
    content: Content


SafetyMessage = Annotated[
    UserMessage | SystemMessage | ToolResponseMessage | CompletionMessage, Field(discriminator="role")
]


class RunShieldRequest(Request):
    """Messages to check: the last one is what the shield judges. `params` belongs to the API and means nothing here."""

    shield_id: str
    messages: Annotated[list[SafetyMessage], MessageLimit, PartLimit]
    params: dict[str, Any] = Field(default_factory=dict)


class RunShieldResponse(Schema):
    violation: SafetyViolation | None = None
