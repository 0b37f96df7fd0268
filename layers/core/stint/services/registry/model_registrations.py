"""Registrations of models: other names for the models of providers."""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ModelType
from stint.domain.llama_stack.registry import Model, Provider
from stint.models.routing import DEMO_MODEL, Router
from stint.services.registry.catalogue import Catalogue, model_of

SENTENCE_TRANSFORMERS = "sentence-transformers"
"""The provider of embedding models in Llama Stack. Its models stand for the default embedding model."""


def register_request(
    request: ModelRegisterRequest, router: Router, providers: Sequence[Provider], default_embedding: str
) -> Model:
    """Return the model of a registration. Without an explicit provider, its id determines the provider."""
    if request.model_type == "embedding":
        return embedding_model(request, providers, default_embedding)
    name = request.provider_model_id or request.model_id
    routed, bare = router.route(name)
    provider_id = request.provider_id or routed
    return model_of(request, provider_id, bare if provider_id == routed else request.provider_model_id or bare)


def embedding_model(request: ModelRegisterRequest, providers: Sequence[Provider], default: str) -> Model:
    """Return the embedding model of a registration, with its dimension if that is known.

    Without a provider in its id, it belongs to that of the `default` embedding model.
    """
    name = request.provider_model_id or request.model_id
    prefix, found, _ = name.partition("/")
    named = bool(found) and prefix in providers_of(providers, "embedding")
    provider_id = request.provider_id or (prefix if named else default.partition("/")[0])
    model = model_of(request, provider_id, name.removeprefix(f"{provider_id}/"))
    kinds = {each.provider_id: each.provider_type.partition("::")[2] for each in providers if each.api == "inference"}
    return with_dimension(model, kinds.get(provider_id, ""))


def find_unlisted_models(
    model_id: str, router: Router, providers: Sequence[Provider], configured: Catalogue
) -> list[Model]:
    """Return the model, if any, that requests may name by an id that no list has."""
    provider_id, _, name = model_id.partition("/")
    if provider_id == SENTENCE_TRANSFORMERS and name:
        return list(configured.aliases.values())[:1]
    kinds = {each.provider_id: each.provider_type.partition("::")[2] for each in providers if each.api == "inference"}
    kind = kinds.get(provider_id, "")
    if not name or provider_id not in {*kinds, *router.providers}:
        return []
    # Only one scripted model is shown.
    if kind == "scripted" and name != DEMO_MODEL.partition("/")[2]:
        return []
    try:
        request = ModelRegisterRequest(model_id=model_id)
    except ValidationError:  # no model can have this id
        return []
    model = model_of(request, provider_id, name).model_copy(update={"owner": None})
    embedding = with_dimension(model, kind) if kind else model
    if embedding.metadata:
        return [embedding.model_copy(update={"model_type": "embedding"})]
    return [model] if provider_id in router.providers else []


def with_dimension(model: Model, kind: str) -> Model:
    """Return an embedding model whose metadata has the dimension, if it is known."""
    from stint.retrieval.dimensions import known_dimension  # noqa: PLC0415 - not at the start of a function

    dimension = known_dimension(kind, model.provider_resource_id)
    if dimension is None or "embedding_dimension" in model.metadata:
        return model
    return model.model_copy(update={"metadata": {**model.metadata, "embedding_dimension": dimension}})


def providers_of(providers: Iterable[Provider], model_type: ModelType) -> list[str]:
    """Return the ids of the providers of models of a type."""
    without = {"llm": ("hashed", "local"), "embedding": ("scripted",)}[model_type]
    return [
        each.provider_id
        for each in providers
        if each.api == "inference" and each.provider_type.partition("::")[2] not in without
    ]


def refuse_unknown_provider(model: Model, providers: Iterable[Provider]) -> None:
    """Raise InvalidRequest for a model whose provider has no models of its type."""
    known = providers_of(providers, model.model_type)
    if model.model_type == "embedding" and model.provider_id == SENTENCE_TRANSFORMERS:
        return
    if model.provider_id not in known:
        raise InvalidRequest(
            f"Provider {model.provider_id!r} is not one of {known}.", code="provider_not_found", param="provider_id"
        )
