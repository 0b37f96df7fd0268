"""Registrations: toolgroups, shields and models. The stored document is the one that the API returns.

Their names are chosen by callers, and are in URL paths. So a name that a client or a proxy would change on the way is
refused, because nobody could read or delete the object.
"""

import re
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, AliasChoices, Field
from pydantic.json_schema import SkipJsonSchema

from stint.domain.content import URL, Content
from stint.domain.fields import Omitted, invalid
from stint.domain.limits import MessageLimit, ModelMetadata, PartLimit, ShieldParams, ToolgroupArgs, too_long
from stint.domain.messages import UserMessage
from stint.domain.schema import Request, Schema
from stint.domain.steps import CompletionMessage, SafetyViolation
from stint.domain.tools import OfferedVaults, ToolParameter, ToolResponseMessage

S = TypeVar("S", bound=Schema)
CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
ROLES = "roles"
"""The attribute of an owner that Llama Stack has for roles."""
ADMIN: Final = "admin"
"""The role of an owner with the scope of that name."""
LONGEST_IDENTIFIER = 1000
"""Maximum bytes in UTF-8. A key of the table has room for these and the kind of the registration."""


def check_identifier(identifier: str) -> str:
    """Refuse an identifier that no request path can contain. Clients normalise `.` and `..` (RFC 3986, 5.2.4)."""
    size = len(identifier.encode())
    if size > LONGEST_IDENTIFIER:
        raise invalid(f"The identifier has {size} bytes in UTF-8; at most {LONGEST_IDENTIFIER} are allowed.")
    if CONTROL_CHARACTERS.search(identifier):
        raise invalid("The identifier has a control character, such as a line break. Remove it.")
    if identifier.endswith("/") or not {".", ".."}.isdisjoint(identifier.split("/")):
        raise invalid(
            "The identifier ends with a slash, or has a segment '.' or '..', so it cannot be used in a URL path. "
            "Choose another one."
        )
    return identifier


def check_endpoint(endpoint: URL) -> URL:
    if fault := too_long("mcp_endpoint", endpoint.uri):
        raise invalid(fault)
    return endpoint


def check_segments(name: str) -> str:
    """Refuse a name with an empty segment, because proxies merge slashes."""
    if "" in name.split("/"):
        raise invalid("The name begins with a slash, or has two in a row, so no URL can contain it. Choose another.")
    return name


ModelType = Literal["llm", "embedding"]
Identifier = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(check_identifier)]


class Owner(Schema):
    """The owner of a registration. Configured ones have none."""

    principal: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)

    def is_admin(self) -> bool:
        """Return whether an admin has made the registration. One of an older version does not say so."""
        return self.attributes == {ROLES: [ADMIN]}


Override = Annotated[Omitted[Literal[True]], Field(description="An admin has given a name another meaning.")]
"""The mark of a registration whose name already meant something else. It wins over that."""


class RegistrationMarks(Schema):
    """The fields of any stored registration that say who made it."""

    owner: Owner | None = None
    override: Override = None

    def belongs_to_admin(self) -> bool:
        """Return whether only an admin may unregister it."""
        return self.override is True or (self.owner is not None and self.owner.is_admin())


def marks_of(document: Schema) -> RegistrationMarks:
    """Return the marks of a registration."""
    return RegistrationMarks(owner=getattr(document, "owner", None), override=getattr(document, "override", None))


def without_marks(document: S) -> S:
    """Return a definition without what says who registered it."""
    fields = {"owner", "override"} & type(document).model_fields.keys()
    return document.model_copy(update=dict.fromkeys(fields))


class ToolGroupEntry(Schema):
    """A toolgroup as lists return it."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["tool_group"] = "tool_group"
    mcp_endpoint: URL | None = None
    args: dict[str, Any] | None = None
    override: Override = None


class ToolGroup(ToolGroupEntry):
    owner: Owner | None = None
    sealed: SkipJsonSchema[Omitted[str]] = None
    """The encrypted credentials of a stored toolgroup, which no response has."""
    vaults: SkipJsonSchema[Omitted[OfferedVaults]] = None
    """The vaults of a toolgroup that the agent of a session defines. It has no effect in a registration."""


class Tool(Schema):
    """A tool of a toolgroup, with its JSON schema, also flattened to a list of parameters."""

    identifier: str
    provider_resource_id: str | None = None
    provider_id: str
    type: Literal["tool"] = "tool"
    toolgroup_id: str
    description: str
    parameters: list[ToolParameter]
    input_schema: dict[str, Any]
    """As in later releases of Llama Stack. The parameters lack what is nested."""
    metadata: dict[str, Any] | None = None


class RuntimeTool(Tool):
    """A tool as the tool runtime lists it, with a `name` where the registry has `identifier`."""

    name: str


class ToolInvokeRequest(Request):
    tool_name: str
    arguments: dict[str, Any] = Field(validation_alias=AliasChoices("kwargs"))


class ToolInvocationResult(Schema):
    """The result of a tool outside a turn. `error_code` is 1 if it failed."""

    content: Content
    error_message: str | None = None
    error_code: int = 0
    metadata: dict[str, Any] | None = None


class ShieldEntry(Schema):
    """A shield as lists return it."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["shield"] = "shield"
    params: dict[str, Any] = Field(default_factory=dict)


class RegisteredShield(ShieldEntry):
    owner: Owner | None = None
    model: Annotated[Omitted[str], Field(description="The full id of the model that it asks, if it asks one.")] = None


class ToolGroupRegisterRequest(Request):
    """A toolgroup to register. The provider defines `args`; see docs/tools.md."""

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
    """Another name for a model. `provider_model_id` is the provider's own id. An embedding model is only listed."""

    model_id: Identifier
    provider_model_id: str | None = None
    provider_id: str | None = None
    metadata: ModelMetadata = Field(default_factory=dict)
    model_type: ModelType = "llm"


class Configured(Request):
    """The value of the setting STINT_REGISTRY: registrations that always exist, without an owner."""

    toolgroups: list[ToolGroupRegisterRequest] = Field(default_factory=list)
    shields: list[ShieldRegisterRequest] = Field(default_factory=list)
    models: list[ModelRegisterRequest] = Field(default_factory=list)


class UnavailableToolGroup(Schema):
    """A toolgroup that cannot list its tools."""

    toolgroup_id: str
    reason: str


class ToolList(Schema):
    """Tools. A list of all toolgroups' tools has the toolgroups that are `unavailable`, which Llama Stack omits."""

    data: list[Tool]
    unavailable: Omitted[list[UnavailableToolGroup]] = None


class RuntimeToolList(Schema):
    """Tools as the tool runtime lists them; see ToolList."""

    data: list[RuntimeTool]
    unavailable: Omitted[list[UnavailableToolGroup]] = None


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
    """Messages to check. The shield judges the last one. `params` is part of the API and has no effect here."""

    shield_id: str
    messages: Annotated[list[SafetyMessage], MessageLimit, PartLimit]
    params: dict[str, Any] = Field(default_factory=dict)


class RunShieldResponse(Schema):
    violation: SafetyViolation | None = None
