"""A search through the blocks of a store, one after the other, the newest first.

By vector, only the best k rows of the blocks so far are kept. By words, that is not possible: the weight of a word in
BM25 depends on how many rows of the whole store have it, which is known only after the last block. So `add` keeps the
postings of the query's words, with their blocks, and `results` weighs them.

Words are counted in all visible rows, also those that the filter excludes: the weight of a word is a property of the
store. Equal scores are in the order of keys, whatever the blocks are, so that a merge changes no result.
"""

from collections.abc import Iterable, Iterator, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from stint.dataclasses import dataclass, field
from stint.domain.filters import Attributes, Filter
from stint.retrieval.packed.block import Block, Floats, Mask, Rows, unit
from stint.retrieval.port import IndexQuery
from stint.retrieval.rankers import fuse
from stint.retrieval.words import number_of, query_text, words

K1, B = 1.5, 0.75
"""The parameters of BM25, as in bm25s."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A chunk that was found, and where its record is. `record` is None if it is still in the bucket."""

    key: str
    """The chunk's key."""
    score: float
    """The cosine, BM25, or the ranker's score."""
    block: str
    place: tuple[int, int]
    attributes: Attributes
    record: bytes | None


@dataclass(slots=True)
class Matches:
    """The rows of one block that have words of the query, before the weights of the words are known."""

    name: str
    """The block's name."""
    block: Block
    allowed: Mask
    postings: list[tuple[int, Rows, NDArray[np.float64]]] = field(default_factory=list)


class Scan:
    """The chunks that a query finds. `add` must be called with every block of the store."""

    def __init__(self, query: IndexQuery) -> None:
        self._query = query
        self._vector = None if query.mode == "keyword" else unit(query.vector or ())
        text = "" if query.mode == "vector" else query_text(query.text or "")
        self._terms = [number_of(word) for word in dict.fromkeys(words(text))]
        self._frequencies = np.zeros(len(self._terms), dtype=np.int64)
        self._rows, self._length = 0, 0
        self._near: list[FoundRow] = []
        self._matches: list[Matches] = []

    def add(self, name: str, block: Block, alive: Mask) -> None:
        """Look at a block. `alive` are the rows that no newer block hides."""
        allowed = alive if self._query.filter is None else alive & passing(block, self._query.filter)
        if self._vector is not None:
            self._near = best([*self._near, *self._nearest(name, block, allowed)], self._query.k)
        if self._terms:
            self._count_words(name, block, alive, allowed)

    def _nearest(self, name: str, block: Block, allowed: Mask) -> Iterator[FoundRow]:
        """Yield the rows whose vectors are nearest. Zero vectors have no direction, and are not found."""
        if self._vector is None or not self._vector.any():
            return
        # einsum adds the products of each row in the same order, unlike BLAS: equal vectors have equal scores.
        scores = np.einsum("ij,j->i", block.vectors, self._vector)
        for row in top(scores, np.flatnonzero(allowed & ~block.zero), self._query.k):
            yield make_found(name, block, row, float(scores[row]))

    def _count_words(self, name: str, block: Block, alive: Mask, allowed: Mask) -> None:
        self._rows += int(np.count_nonzero(alive & (block.lengths > 0)))
        self._length += int(block.lengths[alive].sum(dtype=np.int64))
        matches = Matches(name, block, allowed)
        for at, term in enumerate(self._terms):
            rows, counts = block.postings(term)
            living = alive[rows]
            if living.any():
                self._frequencies[at] += np.count_nonzero(living)
                matches.postings.append((at, rows[living], counts[living].astype(np.float64)))
        if matches.postings:
            self._matches.append(matches)

    def results(self) -> list[FoundRow]:
        """Return the best chunks of all blocks."""
        if self._query.mode == "vector":
            return self._near
        words_found = best((each for matches in self._matches for each in self._weigh(matches)), self._query.k)
        return words_found if self._query.mode == "keyword" else self._fused(words_found)

    def _weigh(self, matches: Matches) -> Iterator[FoundRow]:
        """Yield the best rows of a block by BM25 in Lucene's form, whose weights are never negative."""
        scores = np.zeros(len(matches.allowed))
        weights = np.log1p((self._rows - self._frequencies + 0.5) / (self._frequencies + 0.5))
        for at, rows, counts in matches.postings:
            lengths = matches.block.lengths[rows] / (self._length / self._rows)
            scores[rows] += weights[at] * counts / (counts + K1 * (1 - B + B * lengths))
        for row in top(scores, np.flatnonzero(matches.allowed & (scores > 0)), self._query.k):
            yield make_found(matches.name, matches.block, row, float(scores[row]))

    def _fused(self, words_found: Sequence[FoundRow]) -> list[FoundRow]:
        every = {each.key: each for each in (*self._near, *words_found)}
        lists = [[(each.key, each.score) for each in found] for found in (self._near, words_found)]
        ranked = fuse(lists[0], lists[1], self._query.ranker)[: self._query.k]
        return [rescored(every[key], score) for key, score in ranked]


def passing(block: Block, condition: Filter) -> Mask:
    """Return the rows whose attributes match a filter."""
    each = np.array([condition.matches(attributes) for attributes in block.attributes], dtype=np.bool_)
    return np.asarray(each[block.attributes_of]) if len(each) else np.zeros(0, dtype=np.bool_)


def top(scores: NDArray[np.float64] | Floats, rows: NDArray[np.intp], k: int) -> list[int]:
    """Return the rows with the highest scores. Rows are sorted by key, and the order of equal scores is kept."""
    order = np.argsort(-scores[rows], kind="stable")[:k]
    return [int(row) for row in rows[order]]


def make_found(name: str, block: Block, row: int, score: float) -> FoundRow:
    """Return a row of a block, by the block's name."""
    start, end = block.place(row)
    record = block.body[start:end] if end <= len(block.body) else None
    attributes = block.attributes[int(block.attributes_of[row])]
    return FoundRow(block.key(row), score, name, (start, end), attributes=attributes, record=record)


def best(each: Iterable[FoundRow], k: int) -> list[FoundRow]:
    return sorted(each, key=lambda found: (-found.score, found.key))[:k]


def rescored(each: FoundRow, score: float) -> FoundRow:
    return FoundRow(each.key, score, each.block, each.place, attributes=each.attributes, record=each.record)


def live_rows(block: Block, hidden: set[bytes]) -> Mask:
    """Return the rows that no newer block hides, and add to `hidden` what this one hides."""
    keys: list[bytes] = block.keys.tolist()
    alive = np.fromiter((key not in hidden for key in keys), dtype=np.bool_, count=len(keys))
    hidden.update(keys, block.deleted.tolist())
    return alive


def rows_of(block: Block, wanted: Set[bytes]) -> Mask:
    """Return the rows with these keys."""
    keys: list[bytes] = block.keys.tolist()
    return np.fromiter((key in wanted for key in keys), dtype=np.bool_, count=len(keys))
