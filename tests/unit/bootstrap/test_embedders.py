"""The embedders of the settings."""

import pytest
from pydantic import SecretStr
from tests.servers.embeddings import EmbeddingsServer

from stint.bootstrap.adapters import Adapters
from stint.retrieval.embedder_router import MeteredEmbedder
from stint.retrieval.embedders.openai import OpenAIEmbeddings
from stint.settings import Settings


def test_the_default_embedding_model_works_offline() -> None:
    embedders = Adapters(Settings()).embedders

    assert embedders.resolve(embedders.default_model).dimension == 384


def test_the_setting_selects_the_default_embedding_model() -> None:
    assert Adapters(Settings(embedding_model="hashed/words-64")).embedders.default_model == "hashed/words-64"


@pytest.mark.parametrize(
    ("model", "dimension"),
    [
        ("openai/text-embedding-3-small", 1536),
        ("openai/nomic-embed-text", None),
        ("bedrock/amazon.titan-embed-text-v2:0", 1024),
    ],
)
def test_embedding_models_of_openai_and_bedrock_are_made_without_a_request(model: str, dimension: int | None) -> None:
    assert Adapters(Settings()).embedders.resolve(model).dimension == dimension


async def test_the_openai_settings_are_those_of_its_embeddings() -> None:
    with EmbeddingsServer() as server:
        settings = Settings(openai_base_url=server.base_url, openai_api_key=SecretStr("sk-of-the-settings"))
        found = Adapters(settings).embedders.resolve("openai/words").embedder
        assert isinstance(found, MeteredEmbedder)
        assert isinstance(found.embedder, OpenAIEmbeddings)
        await found.embed("words", ["red"])
        await found.embedder.aclose()

    assert server.requests[0].headers["authorization"] == "Bearer sk-of-the-settings"
