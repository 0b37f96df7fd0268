"""Rankers: one order of what a vector search and a keyword search found."""

from collections.abc import Iterable, Mapping, Sequence

from stint.domain.retrieval import RRFRanker, WeightedRanker

Ranked = Sequence[tuple[str, float]]
"""Keys with their scores, the best first."""


def fuse(vector: Ranked, keyword: Ranked, ranker: RRFRanker | WeightedRanker) -> list[tuple[str, float]]:
    """Return the keys of both lists with the ranker's scores, the best first; equal scores in the order of keys."""
    if isinstance(ranker, RRFRanker):
        weighed = [(reciprocal_ranks(each, ranker.impact_factor), 1.0) for each in (vector, keyword)]
    else:
        weighed = [(scaled(vector), ranker.alpha), (scaled(keyword), 1 - ranker.alpha)]
    return in_order(
        (key, sum(weight * scores.get(key, 0.0) for scores, weight in weighed))
        for key in dict.fromkeys(key for key, _ in (*vector, *keyword))
    )


def reciprocal_ranks(ranked: Ranked, impact_factor: float) -> Mapping[str, float]:
    return {key: 1 / (impact_factor + rank) for rank, (key, _) in enumerate(ranked, 1)}


def scaled(ranked: Ranked) -> Mapping[str, float]:
    """Return the scores scaled to 0..1. If they are all equal, each is 1."""
    scores = [score for _, score in ranked]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return {key: (score - low) / (high - low) if high > low else 1.0 for key, score in ranked}


def in_order(scored: Iterable[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return keys and scores, the best first; equal scores in the order of keys."""
    return sorted(scored, key=lambda each: (-each[1], each[0]))
