"""The embedding models of vector stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stint.domain.errors import ModelError
from stint.domain.vector_stores import EmbeddingChoice
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Vector

PROBE = "dimension"
"""A text that is embedded to learn the dimension of a model that does not state it."""


@dataclass(frozen=True, slots=True)
class EmbeddingModels:
    """Embeds texts with the models of vector stores."""

    router: EmbedderRouter

    async def choose(self, model_id: str | None = None) -> EmbeddingChoice:
        """Return a model, the default one without an id, with its dimension.

        Raises:
            InvalidRequest: the model does not exist.
            ModelError: its dimension is not known, and its provider failed.
        """
        chosen = model_id or self.router.default_model
        model = self.router.resolve(chosen)
        dimension = model.dimension
        if dimension is None:
            [vector] = (await model.embedder.embed(model.provider_model_id, [PROBE])).vectors
            dimension = len(vector)
        return EmbeddingChoice(name=chosen, model=model.model_id, dimension=dimension)

    async def embed(
        self, choice: EmbeddingChoice, texts: Sequence[str], kind: Literal["document", "query"] = "document"
    ) -> list[Vector]:
        """Embed texts with the model of a store.

        Raises:
            ModelError: the provider failed, or its vectors have another dimension than the store.
        """
        model = self.router.resolve(choice.model)
        vectors = (await model.embedder.embed(model.provider_model_id, texts, kind=kind)).vectors
        for vector in vectors:
            if len(vector) != choice.dimension:
                raise ModelError(
                    f"Embedding model {choice.model!r} returned {len(vector)} dimensions, but the vector store has "
                    f"{choice.dimension}. Create another store for this model."
                )
        return vectors
