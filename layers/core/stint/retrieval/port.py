"""The ports of retrieval: an index of vectors and texts, and a model that embeds texts.

There are two adapters of VectorIndex, `packed/` and `s3_vectors/`; `routed.py` chooses one for each store. The port
knows chunks, not documents: which generation of a document's chunks is valid is decided by the caller, who asks for
more chunks than it needs and drops the others.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from stint.dataclasses import dataclass, field
from stint.domain.errors import ContextLengthExceeded
from stint.domain.filters import Attributes, Filter
from stint.domain.retrieval import RRFRanker, SearchMode, WeightedRanker

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Entry:
    """A chunk in an index."""

    key: str
    """Unique in the index; up to 200 characters of ASCII."""
    vector: Vector
    """May be zero: it is then found by words only."""
    text: str
    """What is returned, and searched by words."""
    document: str
    """The key of the document whose chunk this is."""
    generation: str
    """The attempt that wrote it."""
    attributes: Attributes = field(default_factory=dict)
    """Can be filtered."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Returned as it is."""


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A search in one index. `vector` is needed unless the mode is `keyword`, `text` unless it is `vector`."""

    k: int
    mode: SearchMode
    vector: Vector | None = None
    text: str | None = None
    filter: Filter | None = None
    ranker: RRFRanker | WeightedRanker = field(default_factory=RRFRanker)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that an index found."""

    key: str
    """The chunk's key."""
    score: float
    """Higher is better: the cosine, BM25, or the ranker's score."""
    text: str
    """The chunk's text."""
    document: str
    """The key of its document."""
    generation: str
    """The attempt that wrote it."""
    attributes: Attributes = field(default_factory=dict)
    """Those of the last write."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """As it was written."""


class VectorIndex(Protocol):
    """Indexes of chunks, one per vector store, named by `stint.store.keys.vector_index`.

    Writes are found by the next query. All methods raise StoreUnavailable if the service fails, and NotFound for an
    index that does not exist (`create`, `delete` and `drop` may be repeated).
    """

    async def create(self, index: str, dimension: int) -> None:
        """Create an index, unless it exists. Raises Conflict if it exists with another dimension."""
        ...

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        """Write chunks; one with the key of another replaces it.

        Raises:
            InvalidRequest: a vector has the wrong dimension, or a component that is not finite.
            TooLarge: the index would exceed what this adapter can hold. The message names the other adapter.
        """
        ...

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        """Replace the attributes of chunks. Missing ones are ignored.

        Whoever calls it makes sure that nobody deletes or writes the same chunks meanwhile.

        Raises TooLarge as `upsert`.
        """
        ...

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        """Delete chunks. Missing ones are ignored."""
        ...

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        """Return chunks by their keys, with a score of 0. Missing ones are omitted."""
        ...

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        """Return up to `k` chunks, the best first; equal scores in the order of their keys."""
        ...

    async def drop(self, index: str) -> None:
        """Delete an index with its chunks. A missing one is ignored."""
        ...


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The vectors of texts, in their order. `tokens` is the provider's count, if it has one."""

    vectors: list[Vector]
    tokens: int | None = None


class TextTooLong(ContextLengthExceeded):
    """A text has more than the `characters` that the model accepts."""

    def __init__(self, message: str, characters: int) -> None:
        super().__init__(message, param="input")
        self.characters = characters


class Embedder(Protocol):
    """A provider of embedding models."""

    def dimension(self, model_id: str) -> int | None:
        """Return the dimension of a model's vectors; None if only an answer of the provider shows it.

        Raises:
            InvalidRequest: the model does not exist.
        """
        ...

    async def embed(
        self,
        model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        """Embed texts, in as many calls as the provider's limits require.

        Raises:
            InvalidRequest: the model does not exist, a text is too long, or `dimensions` is not one of the model's.
            ModelError: the provider failed; RateLimited or ModelOverloaded if it cannot answer now.
        """
        ...
