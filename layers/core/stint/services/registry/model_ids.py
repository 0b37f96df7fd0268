"""Ids of models: in full, and without their provider's prefix if that is unambiguous."""

from collections.abc import Callable, Iterable, Mapping

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ModelType
from stint.domain.llama_stack.registry import Model
from stint.services.registry.catalogue import Catalogue

NamesProvider = Callable[[str], bool]
"""A function that returns whether an id begins with a provider, so that it is the full id of a model."""


def find_models(catalogue: Catalogue, model_id: str, names_provider: NamesProvider) -> list[Model]:
    """Return the model with an id, or else those with that short id."""
    model = catalogue.models.get(model_id)
    return [model] if model is not None else short_ids(catalogue, names_provider).get(model_id, [])


def short_ids(catalogue: Catalogue, names_provider: NamesProvider) -> Mapping[str, list[Model]]:
    """Return models by their ids without the provider's prefix and, if nothing else has these ids, by their aliases.

    Ids that are full ids of other models are omitted. A registered model has a short id only if the configuration gives
    it no meaning, so that it makes none of them ambiguous.
    """
    models = catalogue.models
    found: dict[str, list[Model]] = {}
    for model in models.values():
        # Configured models first: what a short id means must not depend on what somebody registers.
        if model.owner is None and (short := short_id_of(model, catalogue, names_provider)):
            found.setdefault(short, []).append(model)
    for alias, model in catalogue.aliases.items():
        if alias not in models:
            found.setdefault(alias, [model])
    taken = {*found, *(full_id.partition("/")[2] for full_id in catalogue.unlisted)}
    for model in models.values():
        if model.owner is not None and (short := short_id_of(model, catalogue, names_provider)) not in {"", *taken}:
            found.setdefault(short, []).append(model)
    return found


def short_id_of(model: Model, catalogue: Catalogue, names_provider: NamesProvider) -> str:
    """Return the id of a model without its provider's prefix; an empty text if that is another id."""
    short = model.identifier.removeprefix(f"{model.provider_id}/")
    return "" if short in catalogue.models or names_provider(short) else short


def with_short_ids(catalogue: Catalogue, names_provider: NamesProvider) -> list[Model]:
    """Return the models, followed by those with a short id under that id."""
    unique = {short: found[0] for short, found in short_ids(catalogue, names_provider).items() if len(found) == 1}
    return [*catalogue.models.values(), *(named(model, short) for short, model in unique.items())]


def with_default_marks(models: Iterable[Model], configured: Catalogue) -> list[Model]:
    """Return models, of which those are marked that requests without a model use: the first configured of each type."""
    first = first_of_each_type(configured.models.values())
    return [
        model.model_copy(update={"default": True}) if first.get(model.model_type) == model.identifier else model
        for model in models
    ]


def first_of_each_type(models: Iterable[Model]) -> dict[ModelType, str]:
    """Return the id of the first model of each type."""
    first: dict[ModelType, str] = {}
    for model in models:
        first.setdefault(model.model_type, model.identifier)
    return first


def named(model: Model, identifier: str) -> Model:
    """Return a model under another id."""
    return model.model_copy(update={"identifier": identifier, "id": identifier})


def full_id_of(model: Model) -> str:
    """Return the id of a model with its provider, by which callers and tenants are limited."""
    return f"{model.provider_id}/{model.provider_resource_id}"


def is_own_name(model: Model) -> bool:
    """Return whether a model is registered, but not as an override: its id, if a full one, is that of the model."""
    return model.owner is not None and not model.override


def is_embedding(model: Model) -> bool:
    return model.model_type == "embedding"


def refuse_embedding(model: Model) -> None:
    """Raise InvalidRequest for an embedding model, which writes no answers."""
    if is_embedding(model):
        raise InvalidRequest(
            f"Model {model.identifier!r} is an embedding model. Use a model with model_type llm.",
            code="model_not_supported",
            param="model",
        )
