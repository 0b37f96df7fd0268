"""The default number of dimensions of a provider's embedding models."""

from collections.abc import Sequence
from typing import Literal

from stint.retrieval.port import Embedder, Embeddings


class DefaultDimensions:
    """Embedding models whose vectors have a number of dimensions, unless the request sets another."""

    def __init__(self, embedder: Embedder, dimensions: int) -> None:
        self._embedder, self._dimensions = embedder, dimensions

    def dimension(self, model_id: str) -> int:
        """Return the default, if the model exists; see the port."""
        self._embedder.dimension(model_id)
        return self._dimensions

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts; see the port."""
        return await self._embedder.embed(model_id, texts, kind=kind, dimensions=dimensions or self._dimensions)
