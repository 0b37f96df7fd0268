"""Searches in vector stores: what callers ask for, and what is found."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from stint.dataclasses import dataclass, field
from stint.domain.filters import Attributes, Filter
from stint.domain.schema import Request

SearchMode = Literal["vector", "keyword", "hybrid"]


class RRFRanker(Request):
    """Reciprocal rank fusion: a chunk's score is the sum of 1 / (impact_factor + rank) over both lists.

    Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """

    type: Literal["rrf"] = "rrf"
    impact_factor: float = Field(default=60, gt=0)


class WeightedRanker(Request):
    """The weighted sum of both scores, each scaled to 0..1 in its list. `alpha` is the weight of the vector score."""

    type: Literal["weighted"] = "weighted"
    alpha: float = Field(default=0.5, ge=0, le=1)


Ranker = Annotated[RRFRanker | WeightedRanker, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search in one or more vector stores."""

    store_ids: Sequence[str]
    """Ids of vector stores, or names of vector dbs."""
    queries: Sequence[str]
    """They are searched separately, and a chunk has the best of its scores."""
    max_results: int = 10
    mode: SearchMode = "hybrid"
    ranker: RRFRanker | WeightedRanker = field(default_factory=RRFRanker)
    filter: Filter | None = None
    score_threshold: float = 0.0
    """Minimum score of a result."""
    session: str | None = None
    """The session whose own store may be searched."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that was found."""

    store_id: str
    document_id: str
    """The id of its file, or the caller's id of its document."""
    score: float
    """Higher is better."""
    text: str
    filename: str = ""
    attributes: Attributes = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the caller stored with the chunk."""
