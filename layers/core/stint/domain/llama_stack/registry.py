"""Models and providers as the registry lists them."""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.llama_stack.registrations import ModelType, Override, Owner
from stint.domain.schema import Schema

LLAMA_STACK_VERSION = "0.2.12"
"""The release of Llama Stack that this API implements. Clients compare major and minor."""

LLAMA_MODEL = "llama_model"
"""The metadata with the model for which the API of October 2024 has registered a name."""


Default = Annotated[Omitted[Literal[True]], Field(description="Requests without a model of this type use it.")]


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
