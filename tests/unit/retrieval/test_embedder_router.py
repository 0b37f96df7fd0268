"""Routing of embedding models."""

from collections.abc import Sequence

import pytest

from stint.domain.errors import InvalidRequest
from stint.retrieval.embedder_router import EmbedderRouter
from stint.retrieval.embedders.hashed import HashedWords
from stint.retrieval.port import Embeddings


class OtherEmbedder:
    def dimension(self, model_id: str) -> int | None:
        return 1024 if model_id == "titan" else None

    async def embed(
        self, model_id: str, texts: Sequence[str], *, kind: str = "document", dimensions: int | None = None
    ) -> Embeddings:
        raise AssertionError


def router(default_model: str = "hashed/words-384") -> EmbedderRouter:
    return EmbedderRouter({"hashed": HashedWords, "other": OtherEmbedder}, default_model)


def test_the_prefix_names_the_provider() -> None:
    found = router().resolve("other/titan")

    assert (found.model_id, found.provider_model_id, found.dimension) == ("other/titan", "titan", 1024)


def test_an_embedder_is_made_once() -> None:
    routed = router()

    assert routed.resolve("other/titan").embedder is routed.resolve("other/unknown").embedder


def test_a_dimension_that_only_an_answer_shows_is_none() -> None:
    assert router().resolve("other/unknown").dimension is None


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_minilm_is_hashed_at_384_where_the_default_is_hashed(name: str) -> None:
    found = router("hashed/words-64").resolve(name)

    assert (found.model_id, found.dimension) == ("hashed/words-384", 384)


def test_minilm_is_another_name_of_any_other_default() -> None:
    found = router("other/titan").resolve("all-MiniLM-L6-v2")

    assert (found.model_id, found.dimension) == ("other/titan", 1024)


def test_an_id_without_a_provider_belongs_to_that_of_the_default() -> None:
    assert router("other/titan").resolve("BAAI/bge-small").model_id == "other/BAAI/bge-small"


@pytest.mark.parametrize("name", ["other/", "words"])
def test_an_unknown_model_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        router().resolve(name)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_a_default_of_an_unknown_provider_is_refused_with_the_setting() -> None:
    with pytest.raises(InvalidRequest, match="STINT_EMBEDDING_MODEL"):
        router("nobody/x").resolve("y")
