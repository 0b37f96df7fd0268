"""The local embedding model. Without its packages, which `make run EMBEDDINGS=local` installs, most are skipped."""

import math
from importlib.util import find_spec

import pytest
from tests.store.retrieval.corpus import QUESTIONS, TEXTS

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import providers
from stint.domain.errors import InvalidRequest, ModelError
from stint.retrieval.embedders.local import LocalEmbeddings
from stint.retrieval.port import Vector
from stint.settings import Settings

INSTALLED = all(find_spec(name) for name in ("wordllama", "tokenizers", "safetensors"))
installed = pytest.mark.skipif(not INSTALLED, reason="the local embedding model is not installed")
SETTINGS = Settings(embedding_model="local/wordllama-256")


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def test_the_model_is_offered_where_it_is_the_default_and_states_its_dimension() -> None:
    offered = Adapters(SETTINGS).embedders

    assert offered.resolve("all-MiniLM-L6-v2").model_id == "local/wordllama-256"
    assert offered.resolve("local/wordllama-256").dimension == 256
    assert "local" in {each.provider_id for each in providers(SETTINGS).data}
    assert "local" not in Adapters(Settings()).embedders.providers
    assert "local" not in {each.provider_id for each in providers(Settings()).data}


async def test_other_models_and_dimensions_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="local/wordllama-256"):
        LocalEmbeddings().dimension("minilm")
    with pytest.raises(InvalidRequest, match="It supports 256, 128, 64"):
        await LocalEmbeddings().embed("wordllama-256", ["x"], dimensions=100)


@pytest.mark.skipif(INSTALLED, reason="the local embedding model is installed")
async def test_a_model_that_is_not_installed_says_how_to_install_it() -> None:
    with pytest.raises(ModelError, match="make run EMBEDDINGS=local"):
        await LocalEmbeddings().embed("wordllama-256", ["x"])


@installed
async def test_texts_without_a_common_word_are_similar_if_they_mean_the_same() -> None:
    texts = ["a dog barked at night", "the hound made noise in the evening", "quarterly revenue figures", ""]
    found = await LocalEmbeddings().embed("wordllama-256", texts)
    dog, hound, revenue, empty = found.vectors

    assert cosine(dog, hound) > 0.3 > cosine(dog, revenue)
    assert (len(dog), any(empty)) == (256, False)
    assert cosine(dog, dog) == pytest.approx(1)


@installed
async def test_a_shorter_vector_is_the_beginning_of_the_longer_one() -> None:
    [short] = (await LocalEmbeddings().embed("wordllama-256", ["red apples"], dimensions=64)).vectors
    [whole] = (await LocalEmbeddings().embed("wordllama-256", ["red apples"])).vectors
    length = math.sqrt(cosine(whole[:64], whole[:64]))

    assert short == pytest.approx([each / length for each in whole[:64]], abs=1e-5)


@installed
async def test_questions_find_their_answers_among_the_first_three() -> None:
    model = LocalEmbeddings()
    vectors = dict(zip(TEXTS, (await model.embed("wordllama-256", list(TEXTS.values()))).vectors, strict=True))
    answered = 0
    for question, expected in QUESTIONS.items():
        [asked] = (await model.embed("wordllama-256", [question])).vectors
        ranked = sorted(vectors, key=lambda name: cosine(asked, vectors[name]), reverse=True)
        answered += expected in ranked[:3]

    assert answered == len(QUESTIONS)
