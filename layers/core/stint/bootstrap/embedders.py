"""The embedders of one Settings object. Each is made when first used."""

from collections.abc import Callable

from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.port import Embedder
from stint.settings import Settings


def make_embedder_router(settings: Settings) -> EmbedderRouter:
    """Return the router of the embedding models."""
    embedders: dict[str, Callable[[], Embedder]] = {
        "hashed": make_hashed,
        "openai": lambda: make_openai(settings),
        "bedrock": lambda: make_bedrock(settings),
    }
    return EmbedderRouter(embedders, settings.embedding_model)


def make_hashed() -> Embedder:
    from stint.retrieval.embedders.hashed import HashedWords  # noqa: PLC0415

    return HashedWords()


def make_openai(settings: Settings) -> Embedder:
    from stint.providers.api_key import ApiKey  # noqa: PLC0415
    from stint.retrieval.embedders.openai import OpenAIEmbeddings  # noqa: PLC0415

    key = ApiKey(settings.openai_api_key.get_secret_value(), settings.openai_secret_arn)
    return OpenAIEmbeddings(settings.openai_base_url, key.read, stall_timeout=settings.model_stall_seconds)


def make_bedrock(settings: Settings) -> Embedder:
    from stint.providers.bedrock.client import connect  # noqa: PLC0415
    from stint.retrieval.embedders.bedrock import BedrockEmbeddings  # noqa: PLC0415

    region, stall_timeout = settings.bedrock_region or None, settings.model_stall_seconds
    return BedrockEmbeddings(lambda: connect(region, stall_timeout=stall_timeout))
