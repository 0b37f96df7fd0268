"""What came of checking one value."""

from dataclasses import dataclass
from typing import Any

from stint.json_schema.paths import Path


@dataclass(frozen=True, slots=True)
class SchemaMismatch:
    """A value does not satisfy a keyword; for `required`, `argument` is the name that is missing."""

    path: Path
    keyword: str
    argument: Any


class Outcome:
    """The mismatches of a value, up to `most` of them, and the keys or indexes that keywords have evaluated."""

    __slots__ = ("evaluated", "mismatches", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.mismatches: list[SchemaMismatch] = []
        self.evaluated: set[str | int] = set()

    @property
    def is_full(self) -> bool:
        return len(self.mismatches) >= self.most

    def add(self, path: Path, keyword: str, argument: Any) -> None:
        if not self.is_full:
            self.mismatches.append(SchemaMismatch(path, keyword, argument))

    def take(self, other: "Outcome") -> None:
        """Take over what is wrong with a part of the value."""
        self.mismatches += other.mismatches[: self.most - len(self.mismatches)]

    def merge(self, other: "Outcome") -> None:
        """Take over what a schema found that was applied to the same value."""
        self.take(other)
        if not other.mismatches:
            self.evaluated |= other.evaluated
