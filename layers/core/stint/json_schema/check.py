"""One value, one schema: what the functions of keywords work with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stint.json_schema.document import JsonSchema, Subschema
from stint.json_schema.outcome import Outcome
from stint.json_schema.paths import Path

if TYPE_CHECKING:
    from stint.json_schema.evaluation import Evaluation


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A value that is checked against a schema."""

    run: "Evaluation"
    subschema: Subschema
    value: Any
    path: Path
    outcome: Outcome

    def fail(self, keyword: str, argument: Any) -> None:
        """Note that the value does not satisfy a keyword."""
        self.outcome.add(self.path, keyword, argument)

    def sibling(self, keyword: str) -> Any:
        """Return the value of a keyword beside this one; None when it is not there, or means nothing."""
        return self.subschema.schema[keyword] if keyword in self.subschema.keywords else None

    def whole(self, schema: JsonSchema) -> "Application":
        """Return the arguments of `apply` that check the same value against another schema."""
        return schema, self.value, self.path, self.outcome.most

    def part(self, schema: JsonSchema, key: str | int) -> "Application":
        """Return the arguments of `apply` that check a property or an item, which counts as evaluated."""
        self.mark(key)
        return schema, self.value[key], (self.path, key), self.outcome.most

    def mark(self, key: str | int) -> None:
        """Note that a keyword has evaluated a property or an item."""
        if self.run.tracks:
            self.outcome.evaluated.add(key)


Application = tuple[JsonSchema, Any, Path, int]
"""A schema, a value, its path, and the most mismatches to look for."""

Keyword = Callable[[ValueCheck, Any], None]
"""Applies a keyword, whose value is the second argument."""
