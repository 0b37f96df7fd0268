"""Checks of what is written to an index, and searched in it."""

import math
from collections.abc import Iterable, Sequence

from stint.domain.errors import InvalidRequest, error_param
from stint.retrieval.port import Entry, IndexQuery, Vector

QUERY_VECTOR = "The query's embedding"
LARGEST = 3.4028234663852886e38
"""The largest number of 32 bits."""


def check_entries(entries: Iterable[Entry], dimension: int) -> None:
    """Raise InvalidRequest for a vector of another dimension, or with a component that is not finite in 32 bits."""
    for at, entry in enumerate(entries):
        check_vector(entry.vector, dimension, f"Embedding at index {at}")


def check_needs(query: IndexQuery) -> None:
    """Raise InvalidRequest if the mode needs a vector or a text that is missing, or the vector is not finite."""
    if query.mode != "keyword":
        if query.vector is None:
            raise InvalidRequest(f"A search in mode {query.mode} needs a vector.")
        check_vector(query.vector, len(query.vector) or 1, QUERY_VECTOR)
    if query.mode != "vector" and query.text is None:
        raise InvalidRequest(f"A search in mode {query.mode} needs a text.")


def check_query(query: IndexQuery, dimension: int) -> None:
    """Raise InvalidRequest also for a vector of another dimension."""
    if query.mode != "keyword" and query.vector is not None:
        check_dimension(query.vector, dimension, QUERY_VECTOR)
    check_needs(query)


def check_vector(vector: Vector, dimension: int, name: str) -> None:
    check_dimension(vector, dimension, name)
    # min and max may miss a NaN, which makes the sum one. There is no loop of Python, for each search has a vector.
    if not (min(vector) >= -LARGEST and max(vector) <= LARGEST and math.isfinite(sum(vector))):
        raise InvalidRequest(f"{name} has a component that is not a finite number of 32 bits.")


def check_dimension(vector: Vector, dimension: int, name: str) -> None:
    if len(vector) != dimension:
        raise InvalidRequest(f"{name} has dimension {len(vector)}, expected {dimension}")


def check_vectors(vectors: Sequence[Vector | None], dimension: int) -> None:
    """Refuse vectors of chunks that do not fit into a store. None is a chunk without one."""
    for index, vector in enumerate(vectors):
        if vector is not None:
            with error_param(f"chunks[{index}].embedding"):
                check_vector(vector, dimension, f"Embedding at index {index}")


def last_of_each_key(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries without those whose key comes again."""
    return list({entry.key: entry for entry in entries}.values())
