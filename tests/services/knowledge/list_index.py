"""A vector index in memory, and an embedder of few words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from stint.domain.errors import Conflict, NotFound
from stint.domain.filters import Attributes
from stint.retrieval.port import Embeddings, Entry, Hit, IndexQuery


class ListIndex:
    """A VectorIndex that scores all entries. `calls` counts its calls."""

    def __init__(self) -> None:
        self.indexes: dict[str, tuple[int, dict[str, Entry]]] = {}
        self.calls: Counter[str] = Counter()

    async def create(self, index: str, dimension: int) -> None:
        self.calls["create"] += 1
        if self.indexes.setdefault(index, (dimension, {}))[0] != dimension:
            raise Conflict("The index has another dimension.")

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        self.calls["upsert"] += 1
        found = self.find(index)
        found.update({entry.key: entry for entry in entries})

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        self.calls["update_attributes"] += 1
        found = self.find(index)
        found.update({key: replace(found[key], attributes=attributes) for key in keys if key in found})

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        self.calls["delete"] += 1
        found = self.find(index)
        for key in keys:
            found.pop(key, None)

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        self.calls["get"] += 1
        found = self.find(index)
        entries = (found[key] for key in keys if key in found)
        return {
            one.key: Hit(one.key, 0.0, one.text, one.document, one.generation, one.attributes, one.metadata)
            for one in entries
        }

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        self.calls["query"] += 1
        hits = [
            Hit(one.key, score, one.text, one.document, one.generation, one.attributes, one.metadata)
            for one in self.find(index).values()
            if (score := score_of(one, query)) > 0 and (query.filter is None or query.filter.matches(one.attributes))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.key))[: query.k]

    async def drop(self, index: str) -> None:
        self.calls["drop"] += 1
        self.indexes.pop(index, None)

    def find(self, index: str) -> dict[str, Entry]:
        if index not in self.indexes:
            raise NotFound("Index", index)
        return self.indexes[index][1]

    @property
    def keys(self) -> list[str]:
        """Return the keys of all entries in all indexes."""
        return [key for _, entries in self.indexes.values() for key in entries]


def score_of(entry: Entry, query: IndexQuery) -> float:
    """Return the cosine, or the part of the query's words that an entry has."""
    if query.mode == "vector" and query.vector is not None:
        return sum(one * other for one, other in zip(entry.vector, query.vector, strict=True))
    words = (query.text or "").lower().split()
    found = sum(word in entry.text.lower() for word in words) / len(words)
    return found if query.mode == "keyword" else found * 2 / 61


class WordsEmbedder:
    """An embedder whose vectors have a dimension for each of a few words."""

    words = ("llama", "peru", "transformer", "attention")

    def __init__(self) -> None:
        self.texts: list[str] = []

    def dimension(self, _model_id: str) -> int | None:
        return len(self.words)

    async def embed(
        self,
        _model_id: str,
        texts: Sequence[str],
        *,
        kind: Literal["document", "query"] = "document",
        dimensions: int | None = None,
    ) -> Embeddings:
        self.texts += texts
        return Embeddings([[float(word in text.lower()) for word in self.words] for text in texts])
