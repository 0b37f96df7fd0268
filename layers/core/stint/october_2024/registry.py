"""Conversion of models, shields and providers to those of October 2024."""

from collections.abc import Iterable

from stint.domain.llama_stack.registrations import ModelRegisterRequest, ShieldEntry, ShieldRegisterRequest
from stint.domain.llama_stack.registry import LLAMA_MODEL, ModelEntry, Provider
from stint.october_2024.schemas.registry import (
    NewOctoberModel,
    NewOctoberShield,
    OctoberModel,
    OctoberShield,
    ProviderInfo,
)

PROVIDER_SHIELD = "provider_shield_id"
APIS = {"vector_io": "memory"}
"""The names of APIs that were others in October 2024."""


def from_model(model: ModelEntry) -> OctoberModel:
    """Convert a model. `llama_model` is what the model was registered for, or else its identifier."""
    metadata = {name: value for name, value in model.metadata.items() if name != LLAMA_MODEL}
    given = str(model.metadata.get(LLAMA_MODEL) or model.identifier)
    return OctoberModel(
        identifier=model.identifier, llama_model=given, metadata=metadata, provider_id=model.provider_id
    )


def to_model(model: NewOctoberModel) -> ModelRegisterRequest:
    """Convert the registration of a model."""
    return ModelRegisterRequest(
        model_id=model.identifier,
        provider_model_id=model.llama_model,
        provider_id=model.provider_id or None,
        metadata={**model.metadata, LLAMA_MODEL: model.llama_model},
    )


def from_shield(shield: ShieldEntry) -> OctoberShield:
    """Convert a shield. Its type is the name of its provider, such as `llama_guard`."""
    params = dict(shield.params)
    if shield.provider_resource_id != shield.identifier:
        params[PROVIDER_SHIELD] = shield.provider_resource_id
    return OctoberShield(
        identifier=shield.identifier,
        type=shield.provider_id.replace("-", "_"),
        params=params,
        provider_id=shield.provider_id,
    )


def to_shield(shield: NewOctoberShield, providers: Iterable[Provider]) -> ShieldRegisterRequest:
    """Convert the registration of a shield. An unknown provider is chosen by the type of the shield."""
    known = {each.provider_id for each in providers if each.api == "safety"}
    by_type = shield.type.replace("_", "-")
    provider = shield.provider_id if shield.provider_id in known or by_type not in known else by_type
    params = {name: value for name, value in shield.params.items() if name != PROVIDER_SHIELD}
    given = shield.params.get(PROVIDER_SHIELD)
    return ShieldRegisterRequest(
        shield_id=shield.identifier,
        provider_shield_id=given if isinstance(given, str) else None,
        provider_id=provider,
        params=params,
    )


def by_api(providers: Iterable[Provider]) -> dict[str, list[ProviderInfo]]:
    """Group providers by the names that their APIs had in October 2024."""
    grouped: dict[str, list[ProviderInfo]] = {}
    for each in providers:
        info = ProviderInfo(provider_id=each.provider_id, provider_type=each.provider_type)
        grouped.setdefault(APIS.get(each.api, each.api), []).append(info)
    return grouped
