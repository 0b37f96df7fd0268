"""Meanings of names by the configuration alone, whatever is registered.

An unmarked registration that gives such a name another meaning is shadowed: no look-up finds it. So it is harmless if
it is older than this rule, or than the configuration. An admin's override has a mark, and is not shadowed, except by a
model or a shield that the configuration lists.
"""

from collections.abc import Sequence
from functools import cached_property

from stint.domain.errors import InvalidRequest
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ModelType, RegisteredShield, ToolGroup
from stint.domain.llama_stack.registry import LLAMA_MODEL, Model, Provider
from stint.models.routing import Router
from stint.services.registry.catalogue import Catalogue, R, Registered, prefixes_of
from stint.services.registry.model_ids import full_id_of, is_embedding, short_ids
from stint.services.registry.model_registrations import SENTENCE_TRANSFORMERS, providers_of, register_request

BUILTIN = "builtin::"
"""The beginning of the ids of toolgroups that belong to the configuration, whether it has them or not."""


class ConfiguredNames:
    """The names of a configuration."""

    def __init__(self, configured: Catalogue, router: Router, providers: Sequence[Provider]) -> None:
        self.configured = configured
        self.router = router
        self.providers = providers

    def find_effect(self, document: R) -> R | None:
        """Return a registration as look-ups find it; None if the configuration wins over it."""
        if self.is_shadowed(document):
            return None
        return self.complete(document) if isinstance(document, Model) else document

    def complete(self, model: Model) -> Model:
        """Return a model with all metadata that the configuration's one of the same name and meaning has."""
        if model.override:
            return model
        definitions = self.definitions_of(model.identifier) or []
        equal = next((each for each in definitions if self.are_equal(model, each)), model)
        return model.model_copy(update={"metadata": model.metadata | equal.metadata})

    def is_shadowed(self, document: Registered) -> bool:
        """Return whether the configuration wins over a registration."""
        if isinstance(document, RegisteredShield):
            return document.identifier in self.configured.shields
        if isinstance(document, ToolGroup):
            return not document.override and any(
                name in self.configured.toolgroups for name in prefixes_of(document.identifier)
            )
        is_listed = document.identifier in self.configured.models
        return is_listed or (not document.override and self.is_redefined_by(document))

    def is_redefined_by(self, model: Model) -> bool:
        """Return whether a model gives its name another meaning than the configuration does."""
        definitions = self.definitions_of(model.identifier)
        return definitions is not None and not any(self.are_equal(model, each) for each in definitions)

    def definitions_of(self, model_id: str) -> list[Model] | None:
        """Return what an id means, at most one model of each type, or None if it has no meaning.

        An ambiguous short id, and one of a provider that is not configured, have a meaning but no model.
        """
        if (model := self.configured.models.get(model_id)) is not None:
            return [model]
        # An ambiguous id has a meaning, so that a registration cannot decide it for everybody.
        if (found := self.short_ids.get(model_id)) is not None:
            return found if len(found) == 1 else []
        provider, separator, _ = model_id.partition("/")
        if separator and provider == SENTENCE_TRANSFORMERS:
            return list(self.configured.aliases.values())
        if not separator or provider not in self.model_providers:
            return None
        defined = (self.define(model_id, "llm"), self.define(model_id, "embedding"))
        return [model for model in defined if model is not None]

    @cached_property
    def short_ids(self) -> dict[str, list[Model]]:
        """The models by their short ids and aliases, with those that are served but not listed."""
        found = dict(short_ids(self.configured, self.router.names_provider))
        for full_id in self.configured.unlisted:
            model = self.define(full_id, "llm")
            found.setdefault(full_id.partition("/")[2], [model] if model is not None else [])
        return found

    @cached_property
    def model_providers(self) -> frozenset[str]:
        """The providers with which the id of a model begins, configured or not."""
        known = {each.provider_id for each in self.providers if each.api == "inference"}
        return frozenset({*known, *self.router.providers, *self.router.known_providers, SENTENCE_TRANSFORMERS})

    def define(self, full_id: str, model_type: ModelType) -> Model | None:
        """Return the model of a full id; None if its provider has none of this type."""
        if model_type == "llm" and not self.router.names_provider(full_id):
            return None
        if model_type == "embedding" and full_id.partition("/")[0] not in providers_of(self.providers, "embedding"):
            return None
        request = ModelRegisterRequest.model_construct(model_id=full_id, model_type=model_type)
        try:
            return register_request(request, self.router, self.providers, "")
        except InvalidRequest:
            return None

    def definition_for(self, request: ModelRegisterRequest) -> Model | None:
        """Return what the configuration means by an id that is registered without a provider and its model."""
        if request.provider_id is not None or request.provider_model_id not in (None, request.model_id):
            return None
        found = self.definitions_of(request.model_id) or []
        return next((model for model in found if model.model_type == request.model_type), None)

    def are_equal(self, model: Model, definition: Model) -> bool:
        """Return whether two models answer alike. Metadata that a model does not state is that of the definition."""
        # What answers decides, not the name under which a provider's model is registered.
        if model.model_type != definition.model_type or self.target_of(model) != self.target_of(definition):
            return False
        names = (model.identifier, model.provider_resource_id, full_id_of(model), self.target_of(model))
        return all(
            definition.metadata.get(name) == value or (name == LLAMA_MODEL and value in names)
            for name, value in model.metadata.items()
        )

    def target_of(self, model: Model) -> str:
        """Return the full id of the model that answers. Models of Llama Stack's provider stand for another."""
        if is_embedding(model) and model.provider_id == SENTENCE_TRANSFORMERS:
            return next(map(full_id_of, self.configured.aliases.values()), full_id_of(model))
        return full_id_of(model)
