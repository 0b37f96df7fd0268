"""Ids of models: in full, and without the prefix of their provider where that is unambiguous."""

from collections.abc import Callable, Mapping

from stint.domain.llama_stack.registry import Model

NamesProvider = Callable[[str], bool]
"""Tells whether an id begins with a provider, so that it means a model of that provider already."""


def find_models(models: Mapping[str, Model], model_id: str, names_provider: NamesProvider) -> list[Model]:
    """Return the model of an id, or else those that the id names without the prefix of their provider."""
    model = models.get(model_id)
    return [model] if model is not None else short_ids(models, names_provider).get(model_id, [])


def short_ids(models: Mapping[str, Model], names_provider: NamesProvider) -> Mapping[str, list[Model]]:
    """Return models by their ids without the prefix of their provider. What such an id means already is left out."""
    found: dict[str, list[Model]] = {}
    for model in models.values():
        short = model.identifier.removeprefix(f"{model.provider_id}/")
        if short and short not in models and not names_provider(short):
            found.setdefault(short, []).append(model)
    return found


def with_short_ids(models: Mapping[str, Model], names_provider: NamesProvider) -> list[Model]:
    """Return the models, then those that are also known by a short id, under that id."""
    unique = {short: found[0] for short, found in short_ids(models, names_provider).items() if len(found) == 1}
    return [*models.values(), *(named(model, short) for short, model in unique.items())]


def named(model: Model, identifier: str) -> Model:
    """Return a model under another id."""
    return model.model_copy(update={"identifier": identifier, "id": identifier})
