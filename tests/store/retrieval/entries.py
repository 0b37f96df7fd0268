"""Chunks and queries for tests of vector indexes."""

from collections.abc import Sequence
from typing import Any

from stint.domain.filters import Attributes, Filter
from stint.domain.retrieval import RRFRanker, SearchMode, WeightedRanker
from stint.retrieval.port import Entry, Hit, IndexQuery


def entry(
    key: str,
    vector: Sequence[float] = (1, 0, 0),
    text: str = "a text",
    attributes: Attributes | None = None,
    metadata: dict[str, Any] | None = None,
) -> Entry:
    return Entry(key, vector, text, f"document of {key}", "g1", attributes or {}, metadata or {})


def near(vector: Sequence[float], k: int = 10, condition: Filter | None = None) -> IndexQuery:
    return IndexQuery(k, "vector", vector=vector, filter=condition)


def about(text: str, k: int = 10, condition: Filter | None = None) -> IndexQuery:
    return IndexQuery(k, "keyword", text=text, filter=condition)


def both(
    vector: Sequence[float],
    text: str,
    k: int = 10,
    condition: Filter | None = None,
    ranker: RRFRanker | WeightedRanker | None = None,
    mode: SearchMode = "hybrid",
) -> IndexQuery:
    return IndexQuery(k, mode, vector, text, condition, ranker or RRFRanker())


def keys(hits: Sequence[Hit]) -> list[str]:
    return [hit.key for hit in hits]


def scores(hits: Sequence[Hit]) -> dict[str, float]:
    return {hit.key: hit.score for hit in hits}
