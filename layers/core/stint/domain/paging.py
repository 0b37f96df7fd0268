"""Pages of a list, and what fits into one answer."""

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_ENTRIES = 1_000
MAX_BYTES = 4_000_000


def carried_size(text: str) -> int:
    """Count a text's bytes on its way through a buffered function: a JSON string, in ASCII before Python 3.12."""
    return len(json.dumps(text))


@dataclass(frozen=True, slots=True)
class Window:
    """Which part of a list is asked for: `limit` None means as many as one answer holds (MAX_ENTRIES, MAX_BYTES)."""

    start: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list in creation order; `has_more` tells that entries follow."""

    data: list[T]
    has_more: bool
