"""The embedders of one Settings object. Each is made when first used."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from stint.providers.api_key import ApiKey
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Embedder, Embeddings
from stint.settings import Settings

if TYPE_CHECKING:
    from stint.bootstrap.model_servers import ModelServer


def make_embedder_router(settings: Settings, servers: "Sequence[ModelServer]" = ()) -> EmbedderRouter:
    """Return the router of the embedding models."""
    embedders: dict[str, Callable[[], Embedder]] = {
        "hashed": make_hashed,
        "openai": lambda: make_openai(settings),
        "bedrock": lambda: make_bedrock(settings),
        **{server.id: partial(make_named, server, settings) for server in servers if server.kind != "scripted"},
    }
    if settings.has_local_embeddings:
        embedders["local"] = make_local
    return EmbedderRouter(embedders, settings.embedding_model)


def make_hashed() -> Embedder:
    from stint.retrieval.embedders.hashed import HashedWords  # noqa: PLC0415

    return HashedWords()


def make_local() -> Embedder:
    from stint.retrieval.embedders.local import LocalEmbeddings  # noqa: PLC0415

    return LocalEmbeddings()


def make_openai(settings: Settings) -> Embedder:
    from stint.retrieval.embedders.openai import OpenAIEmbeddings  # noqa: PLC0415

    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    return OpenAIEmbeddings(settings.openai_base_url, key.read, stall_timeout=settings.model_stall_seconds)


def make_named(server: "ModelServer", settings: Settings) -> Embedder:
    """Return the embedding models of a named server, with its default dimensions."""
    embedder, dimensions = connect_to(server, settings), server.defaults.dimensions
    if dimensions is None:
        return embedder
    return DefaultDimensions(embedder, dimensions)


def connect_to(server: "ModelServer", settings: Settings) -> Embedder:
    if server.is_bedrock:
        return make_bedrock(settings, server.region)
    from stint.retrieval.embedders.openai import OpenAIEmbeddings  # noqa: PLC0415

    key, stall_timeout = server.read_key(settings), settings.model_stall_seconds
    return OpenAIEmbeddings(server.base_url, key, settings=server.setting_names, stall_timeout=stall_timeout)


def make_bedrock(settings: Settings, region: str = "") -> Embedder:
    from stint.providers.bedrock.client import connect  # noqa: PLC0415
    from stint.retrieval.embedders.bedrock import BedrockEmbeddings  # noqa: PLC0415

    chosen, stall_timeout = region or settings.bedrock_region or None, settings.model_stall_seconds
    return BedrockEmbeddings(lambda: connect(chosen, stall_timeout=stall_timeout))


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
