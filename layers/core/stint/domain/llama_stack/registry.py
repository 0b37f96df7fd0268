"""Models and providers as the registry lists them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.llama_stack.registrations import ModelType, Override, Owner
from stint.domain.principals import Scope
from stint.domain.schema import Schema

LLAMA_STACK_VERSION = "0.2.12"
"""The release of Llama Stack that this API implements. Clients compare major and minor."""

LLAMA_MODEL = "llama_model"
"""The metadata with the model for which the API of October 2024 has registered a name."""


Default = Annotated[Omitted[Literal[True]], Field(description="Requests without a model of this type use it.")]


class Caller(Schema):
    """The caller of a request, as its credential says it. `authentication` is `none` where nobody checks callers."""

    authentication: Literal["authorizer", "iam", "none"]
    tenant: str
    scopes: list[Scope] = Field(description="What the credential allows, in the order of docs/security.md.")
    key_id: str | None = Field(description="The id of the API key; null for a token or a role.")
    end_user: str | None = Field(description="The end user whom the header X-Stint-User names.")
    expires_at: int | None = Field(description="The end of the key or token, in seconds since 1970.")


class ModelEntry(Schema):
    """A model as lists return it, with the keys of Llama Stack and of OpenAI."""

    identifier: str
    provider_resource_id: str
    provider_id: str
    type: Literal["model"] = "model"
    metadata: dict[str, Any] = Field(default_factory=dict)
    model_type: ModelType = "llm"
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str
    override: Override = None
    default: Default = None


class Model(ModelEntry):
    """A single model. Configured ones have no owner."""

    owner: Owner | None = None


class ModelList(Schema):
    data: list[ModelEntry]
    object: Literal["list"] = "list"


class ProviderHealth(Schema):
    """The health of a provider. `Not Implemented`: it was not checked, and `message` says so."""

    status: Literal["OK", "Error", "Not Implemented"]
    message: Omitted[str] = None


class Provider(Schema):
    """A configured provider. Its configuration contains no secrets."""

    api: str
    provider_id: str
    provider_type: str
    config: dict[str, Any] = Field(default_factory=dict)
    health: ProviderHealth


class ProviderList(Schema):
    data: list[Provider]


class Route(Schema):
    route: str
    method: str
    provider_types: list[str] = Field(default_factory=list)


class RouteList(Schema):
    data: list[Route]


class Health(Schema):
    status: Literal["OK"] = "OK"


class Version(Schema):
    version: str = LLAMA_STACK_VERSION
