"""The embedding models of vector stores and requests.

A store keeps the model and dimension with which it was created, whatever the registry says later: vectors of different
models cannot be compared. The dimension is, in this order: the requested one, that of the registration, that of the
adapter, or that of an answer (PROBE). Each vector is checked against it, since a provider may change its model.

An id is looked up in the registry first. One that begins with a provider need not be registered.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Literal

from stint.caller import ALL_MODELS, ModelAccess
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.llama_stack.registry import Model
from stint.domain.vector_stores import EmbeddingChoice
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Embeddings, Vector
from stint.services.registry.model_ids import is_embedding, is_own_name
from stint.services.registry.registry import Registry

PROBE = "dimension"
"""A text that is embedded to learn the dimension of a model that does not state it."""

WORDS_ONLY = "hashed/"
"""The provider whose vectors compare words only."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddingModels:
    """Embeds texts with models of the registry, or those that a provider's prefix names.

    Without `get_registry`, which is called when a model is looked up, there is none.
    """

    router: EmbedderRouter
    get_registry: Callable[[], Registry] | None = None
    access: ModelAccess = ALL_MODELS

    async def choose(self, model_id: str | None = None, dimensions: int | None = None) -> EmbeddingChoice:
        """Return a model, the default one without an id, with its dimension or the requested one.

        Raises:
            InvalidRequest: the model does not exist, or is not an embedding model.
            Forbidden: the caller names a model that it may not use.
            ModelError: its dimension is not known, and its provider failed.
        """
        chosen = model_id or self.router.default_model
        full_id, stated = await self._find(chosen)
        model = self.router.resolve(full_id)
        if model_id is not None:  # the default model is the operator's choice
            self.access.require(model.model_id)
        dimension = dimensions or stated or model.dimension
        if dimension is None:
            [vector] = (await model.embedder.embed(model.provider_model_id, [PROBE])).vectors
            dimension = len(vector)
        return EmbeddingChoice(name=chosen, model=model.model_id, dimension=dimension)

    async def choose_for_store(self, model_id: str | None = None) -> EmbeddingChoice:
        """Return the model of a new store, and log if it compares words only. Raises as `choose` does."""
        choice = await self.choose(model_id)
        if choice.model.startswith(WORDS_ONLY):
            logger.info(
                f"A vector store is created with the embedding model {choice.model!r}, which compares words only: no "
                "synonyms and no other languages. Set STINT_EMBEDDING_MODEL, or name another embedding model."
            )
        return choice

    async def _find(self, model_id: str) -> tuple[str, int | None]:
        """Return the full id of a model, and the dimension that its registration states."""
        if self.get_registry is None:
            return model_id, None
        registry = self.get_registry()
        found = await registry.find_models(model_id)
        if self.router.names_provider(model_id):  # a registration as an llm does not refuse it: a model may do both
            found = [model for model in found if is_embedding(model) or not is_own_name(model)]
        # A short id of several providers: a store would depend on the order of registrations.
        if len(found) > 1:
            raise registry.explain_ambiguous(model_id, found)
        if found:
            refuse_other_types(found[0], model_id)
            dimension = found[0].metadata.get("embedding_dimension")
            full_id = f"{found[0].provider_id}/{found[0].provider_resource_id}"
            return full_id, dimension if isinstance(dimension, int) and dimension > 0 else None
        if self.router.names_provider(model_id) or self.router.is_alias(model_id):
            return model_id, None
        error = InvalidRequest(
            f"Model {model_id!r} not found. GET /v1/models lists the models; those with model_type embedding can be "
            f"used here. An id that begins with a provider ({', '.join(f'{name}/' for name in self.router.providers)}) "
            "need not be listed.",
            code="model_not_found",
            param="model",
        )
        error.add(registry.suggest(model_id, await registry.catalogue(), ("embedding",)))
        raise error

    async def embed(
        self, choice: EmbeddingChoice, texts: Sequence[str], kind: Literal["document", "query"] = "document"
    ) -> list[Vector]:
        """Return the vectors of texts; see `embed_texts`. Of a text that is too long, the beginning is embedded."""
        from stint.services.knowledge.truncation import embed_cut  # noqa: PLC0415 - not at the start of a function

        return (await embed_cut(lambda given: self.embed_texts(choice, given, kind), texts)).vectors

    async def embed_texts(
        self,
        choice: EmbeddingChoice,
        texts: Sequence[str],
        kind: Literal["document", "query"] = "document",
        *,
        requested: bool = False,
    ) -> Embeddings:
        """Embed texts with a chosen model. Another dimension than the model's usual one is requested.

        With `requested`, so is an unknown one.

        Raises:
            ModelError: the provider failed, or its vectors have another dimension than chosen.
        """
        model = self.router.resolve(choice.model)
        is_usual = model.dimension == choice.dimension or (model.dimension is None and not requested)
        dimensions = None if is_usual else choice.dimension
        found = await model.embedder.embed(model.provider_model_id, texts, kind=kind, dimensions=dimensions)
        for vector in found.vectors:
            if len(vector) != choice.dimension:
                raise ModelError(
                    f"Embedding model {choice.name!r} returned {len(vector)} dimensions, but {choice.dimension} were "
                    "chosen: by its registration, or when the vector store was created. Register it again, or create "
                    "another store."
                )
        return found


def refuse_other_types(model: Model, model_id: str) -> None:
    """Raise InvalidRequest for a model that writes answers."""
    if model.model_type != "embedding":
        raise InvalidRequest(
            f"Model {model_id!r} is not an embedding model. GET /v1/models lists the models with their model_type.",
            code="model_not_supported",
            param="model",
        )
