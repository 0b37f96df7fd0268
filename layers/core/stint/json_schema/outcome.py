"""The outcome of the check of one value."""

from typing import Any

from stint.dataclasses import dataclass
from stint.json_schema.paths import Path


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """A keyword that a value does not satisfy. For `required`, `argument` is the missing name."""

    path: Path
    keyword: str
    argument: Any


class Outcome:
    """At most `most` mismatches of a value, and the keys or indexes that keywords have evaluated."""

    __slots__ = ("evaluated", "mismatches", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.mismatches: list[SchemaMismatch] = []
        self.evaluated: set[str | int] = set()

    @property
    def is_full(self) -> bool:
        return len(self.mismatches) >= self.most

    def add_mismatch(self, path: Path, keyword: str, argument: Any) -> None:
        if not self.is_full:
            self.mismatches.append(SchemaMismatch(path, keyword, argument))

    def add_part(self, other: "Outcome") -> None:
        """Add the mismatches of a part of the value."""
        self.mismatches += other.mismatches[: self.most - len(self.mismatches)]

    def merge(self, other: "Outcome") -> None:
        """Add the outcome of another schema for the same value."""
        self.add_part(other)
        # A subschema that the value does not satisfy has evaluated nothing.
        if not other.mismatches:
            self.evaluated |= other.evaluated
