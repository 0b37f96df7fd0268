"""Pages of a list, and their limits in entries and bytes."""

import json
from typing import Generic, TypeVar

from stint.dataclasses import dataclass

T = TypeVar("T")

MAX_ENTRIES = 1_000
MAX_BYTES = 4_000_000


def carried_size(text: str) -> int:
    """Return a text's bytes in a buffered response: as a JSON string, which is ASCII before Python 3.12."""
    return len(json.dumps(text))


@dataclass(frozen=True, slots=True)
class Window:
    """The requested part of a list. `limit` None means as many as fit (MAX_ENTRIES, MAX_BYTES)."""

    start: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list in creation order. `has_more`: entries follow."""

    data: list[T]
    has_more: bool
