"""Embeddings of words, without a model."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from stint.domain.errors import InvalidRequest
from stint.retrieval.embedders.hashed import HashedWords, embed_words
from stint.retrieval.port import Vector

CORE = Path(__file__).parents[3] / "layers" / "core"


async def embed(*texts: str, model: str = "words-384", dimensions: int | None = None) -> list[Vector]:
    return (await HashedWords().embed(model, texts, dimensions=dimensions)).vectors


def cosine(one: Vector, other: Vector) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("dimension", [1, 384, 4096])
async def test_vectors_are_normalised_and_have_the_dimension_of_the_id(dimension: int) -> None:
    (vector,) = await embed("The quick brown fox", model=f"words-{dimension}")

    assert HashedWords().dimension(f"words-{dimension}") == len(vector) == dimension
    assert cosine(vector, vector) == pytest.approx(1)


async def test_dimensions_override_the_id() -> None:
    (vector,) = await embed("fox", dimensions=8)

    assert len(vector) == 8


@pytest.mark.parametrize("model", ["words-0", "words-4097", "words", "WORDS-3", "", "all-MiniLM-L6-v2", "words-1e3"])
async def test_another_model_does_not_exist(model: str) -> None:
    with pytest.raises(InvalidRequest, match="hashed/words-N") as caught:
        await embed("fox", model=model)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


async def test_texts_that_share_words_are_closer_than_others() -> None:
    query, near, far = await embed(
        "how do I reset a password",
        "To reset the password of an account, open its settings.",
        "The ferry to the island leaves at nine in the morning.",
    )

    assert cosine(query, near) > 0.3 > 0.15 > abs(cosine(query, far))


async def test_function_words_count_little() -> None:
    query, shares_meaning, shares_function_words = await embed("what is the volcano", "volcano", "what is the bread")

    assert cosine(query, shares_meaning) > 0.9
    assert cosine(query, shares_function_words) < 0.3


async def test_case_and_unicode_forms_make_no_difference() -> None:
    one, other = await embed("\uff26ull STRASSE", "full straße")  # a full-width F

    assert one == other


async def test_chinese_and_japanese_texts_share_pairs_of_characters() -> None:
    query, near, far = await embed("東京タワー", "私は昨日東京タワーに行きました", "猫が好きです")

    assert cosine(query, near) > 0.3 > abs(cosine(query, far))


async def test_a_text_without_words_has_a_zero_vector() -> None:
    assert await embed("", " .!? ") == [[0.0] * 384] * 2


async def test_no_texts_are_no_vectors() -> None:
    assert await embed() == []


async def test_the_words_are_counted_as_tokens() -> None:
    assert (await HashedWords().embed("words-8", ["one two", "three"])).tokens == 3


def test_another_process_embeds_a_text_alike() -> None:
    program = (
        "from stint.retrieval.embedders.hashed import embed_words\nprint(embed_words(['one two three'], 16).vectors[0])"
    )
    command = [sys.executable, "-c", program]
    printed = subprocess.check_output(command, text=True, env={"PYTHONPATH": str(CORE), "PYTHONHASHSEED": "7"})

    assert printed.strip() == str(embed_words(["one two three"], 16).vectors[0])
