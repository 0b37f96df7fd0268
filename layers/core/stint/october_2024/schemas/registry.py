"""Models, shields, providers and routes of the API of October 2024."""

from typing import Annotated, Any

from pydantic import Field, RootModel

from stint.domain.limits import MessageLimit, ModelMetadata, PartLimit, ShieldParams
from stint.domain.llama_stack.registrations import Identifier
from stint.domain.schema import Request, Schema
from stint.october_2024.schemas.messages import OctoberMessage


class OctoberModel(Schema):
    """A model. `llama_model` can be used as its id, too."""

    identifier: str
    llama_model: str
    metadata: dict[str, Any] = Field(default_factory=dict)
    provider_id: str


class NewOctoberModel(Request):
    """Another name for a provider's model, whose own id is `llama_model`."""

    identifier: Identifier
    llama_model: str
    metadata: ModelMetadata = Field(default_factory=dict)
    provider_id: str | None = None


class OctoberModelRegisterRequest(Request):
    model: NewOctoberModel


class OctoberShield(Schema):
    """A shield. `type` names what its provider is."""

    identifier: str
    type: str
    params: dict[str, Any] = Field(default_factory=dict)
    provider_id: str


class NewOctoberShield(Request):
    identifier: Identifier
    type: str
    params: ShieldParams = Field(default_factory=dict)
    provider_id: str | None = None


class OctoberShieldRegisterRequest(Request):
    shield: NewOctoberShield


class ModelIdentifier(Request):
    identifier: str


class ShieldType(Request):
    """The identifier of a shield."""

    shield_type: str


class OctoberRunShieldRequest(Request):
    """Messages to check. The shield judges the last one."""

    shield_type: str
    messages: Annotated[list[OctoberMessage], MessageLimit, PartLimit]
    params: dict[str, Any] = Field(default_factory=dict)


class ProviderInfo(Schema):
    provider_id: str
    provider_type: str


class RouteInfo(Schema):
    route: str
    method: str
    provider_types: list[str] = Field(default_factory=list)


class OctoberModels(RootModel[list[OctoberModel]]):
    """The models of language."""


class OctoberShields(RootModel[list[OctoberShield]]):
    """The shields."""


class ProvidersByAPI(RootModel[dict[str, list[ProviderInfo]]]):
    """The providers of each API."""


class RoutesByAPI(RootModel[dict[str, list[RouteInfo]]]):
    """The routes of each API."""
