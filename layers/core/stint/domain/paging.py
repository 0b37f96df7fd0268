"""Pages of a list, and their limits in entries and bytes."""

import json
from collections.abc import Mapping
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
    """The requested part of a list. `limit` None means as many as fit (MAX_ENTRIES, MAX_BYTES).

    `after` is the id to start after, in the requested order. `name` is a text that the names of the entries contain, in
    any case of letters, and `metadata` are pairs that they have. `by_id`: the answer says where the next page starts.
    """

    start: int = 0
    limit: int | None = None
    after: str | None = None
    newest_first: bool = False
    name: str | None = None
    metadata: Mapping[str, str] | None = None
    by_id: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list by creation. `has_more`: entries follow, those after the id `position` if it is known."""

    data: list[T]
    has_more: bool
    position: str | None = None
