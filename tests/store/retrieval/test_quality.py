import pytest
from tests.store.retrieval.corpus import QUESTIONS, TEXTS

from stint.domain.retrieval import SearchMode, WeightedRanker
from stint.retrieval.embedders.hashed import embed_words
from stint.retrieval.port import Entry, IndexQuery, Vector, VectorIndex

DIMENSION, K = 384, 3


def embed(*texts: str) -> list[Vector]:
    return embed_words(texts, DIMENSION).vectors


async def fill(index: VectorIndex, name: str) -> None:
    await index.create(name, DIMENSION)
    vectors = embed(*TEXTS.values())
    entries = [
        Entry(f"{place:02}", vector, text, key, "g")
        for place, ((key, text), vector) in enumerate(zip(TEXTS.items(), vectors, strict=True))
    ]
    await index.upsert(name, entries)


async def search(index: VectorIndex, name: str, mode: SearchMode) -> dict[str, list[str]]:
    """Return the texts that each question finds, the best first."""
    found: dict[str, list[str]] = {}
    for question in QUESTIONS:
        query = IndexQuery(K, mode, embed(question)[0], question)
        found[question] = [hit.document for hit in await index.query(name, query)]
    return found


def answered(found: dict[str, list[str]]) -> set[str]:
    return {question for question, documents in found.items() if QUESTIONS[question] in documents}


async def test_hybrid_search_finds_at_least_what_each_of_the_two_finds_alone(index: VectorIndex, name: str) -> None:
    await fill(index, name)

    vector, keyword, hybrid = [answered(await search(index, name, mode)) for mode in ("vector", "keyword", "hybrid")]

    assert hybrid >= vector | keyword
    assert hybrid == set(QUESTIONS)
    assert len(vector) >= 18
    assert len(keyword) >= 18


async def test_the_answer_is_mostly_the_first_result_of_a_hybrid_search(index: VectorIndex, name: str) -> None:
    await fill(index, name)

    found = await search(index, name, "hybrid")

    assert sum(documents[0] == QUESTIONS[question] for question, documents in found.items()) >= 18


async def test_ranks_are_the_same_for_every_search_and_order_of_writes(index: VectorIndex, name: str) -> None:
    await fill(index, name)
    first = await search(index, name, "hybrid")
    await index.drop(name)
    await fill(index, name)

    assert await search(index, name, "hybrid") == first


@pytest.mark.parametrize(("alpha", "mode"), [(1.0, "vector"), (0.0, "keyword")])
async def test_all_the_weight_on_one_side_finds_first_what_that_side_does(
    index: VectorIndex, name: str, alpha: float, mode: SearchMode
) -> None:
    await fill(index, name)
    alone = await search(index, name, mode)

    for question, documents in alone.items():
        if not documents:  # S3 Vectors divides Japanese into words in its own way
            continue
        query = IndexQuery(K, "hybrid", embed(question)[0], question, ranker=WeightedRanker(alpha=alpha))
        assert (await index.query(name, query))[0].document == documents[0]
