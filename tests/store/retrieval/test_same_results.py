"""Both adapters find the same, for random chunks, filters and queries."""

import random
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.store.retrieval.entries import both, entry, keys

from stint.domain.filters import Attributes, Filter, NewFilter
from stint.domain.retrieval import RRFRanker, SearchMode, WeightedRanker
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import Entry, IndexQuery
from stint.retrieval.s3_vectors.index import S3VectorsIndex

FILTER: TypeAdapter[Filter] = TypeAdapter(NewFilter)
WORDS = [f"word{at}" for at in range(40)]
MODES: list[SearchMode] = ["vector", "keyword", "hybrid"]
VALUES: list[Any] = ["a", "b", "c" * 500, 1, 2.5, 3, True, False, ""]


def some_attributes(chance: random.Random) -> Attributes:
    wide = {f"k{at}": "w" * 500 for at in range(5, 12)} if chance.random() < 0.2 else {}
    return {f"k{at}": chance.choice(VALUES) for at in range(3) if chance.random() < 0.8} | wide


def some_chunk(chance: random.Random, at: int) -> Entry:
    vector = [chance.gauss(0, 1) for _ in range(8)] if chance.random() < 0.9 else [0.0] * 8
    text = " ".join(chance.choices(WORDS, k=chance.randrange(0, 20)))
    return entry(f"{chance.randrange(80):03}", vector, text, some_attributes(chance), {"at": at})


def some_filter(chance: random.Random, depth: int = 2) -> dict[str, Any]:
    if depth and chance.random() < 0.4:
        parts = [some_filter(chance, depth - 1) for _ in range(chance.randrange(0, 4))]
        return {"type": chance.choice(["and", "or"]), "filters": parts}
    kind = chance.choice(["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"])
    several = kind in ("in", "nin")
    value = chance.choices(VALUES, k=chance.randrange(0, 3)) if several else chance.choice(VALUES)
    return {"type": kind, "key": f"k{chance.randrange(4)}", "value": value}


def some_query(chance: random.Random) -> IndexQuery:
    condition = FILTER.validate_python(some_filter(chance)) if chance.random() < 0.7 else None
    rankers: list[RRFRanker | WeightedRanker] = [
        RRFRanker(impact_factor=chance.choice([1, 60])),
        WeightedRanker(alpha=chance.random()),
    ]
    vector = [chance.gauss(0, 1) for _ in range(8)]
    text = " ".join(chance.choices(WORDS, k=3))
    return both(vector, text, chance.choice([1, 3, 10, 100]), condition, chance.choice(rankers), chance.choice(MODES))


@pytest.mark.parametrize("seed", range(6))
async def test_both_indexes_find_the_same_chunks(
    packed: PackedIndex, s3_vectors: S3VectorsIndex, name: str, seed: int
) -> None:
    chance = random.Random(seed)
    indexes = (packed, s3_vectors)
    for index in indexes:
        await index.create(name, 8)
    for at in range(6):
        chunks = [some_chunk(chance, at) for _ in range(25)]
        gone = [f"{chance.randrange(80):03}" for _ in range(5)]
        for index in indexes:
            await index.upsert(name, chunks)
            await index.delete(name, gone)

    for _ in range(25):
        query = some_query(chance)
        one, other = [await index.query(name, query) for index in indexes]
        assert keys(one) == keys(other), query
        assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=2e-5)
        shown = [(hit.text, hit.document, hit.attributes, hit.metadata) for hit in one]
        assert shown == [(hit.text, hit.document, hit.attributes, hit.metadata) for hit in other]
