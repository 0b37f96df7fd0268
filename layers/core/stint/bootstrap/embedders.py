"""The embedders of one Settings object. Each is made when first used."""

from collections.abc import Callable

from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Embedder
from stint.settings import Settings


def make_embedder_router(settings: Settings) -> EmbedderRouter:
    """Return the router of the embedding models."""
    embedders: dict[str, Callable[[], Embedder]] = {"hashed": make_hashed}
    return EmbedderRouter(embedders, settings.embedding_model)


def make_hashed() -> Embedder:
    from stint.retrieval.embedders.hashed import HashedWords  # noqa: PLC0415

    return HashedWords()
