"""The check of one value against one schema, which the functions of the keywords use."""

from collections.abc import Callable, Mapping
from typing import Any

from stint.dataclasses import dataclass
from stint.json_schema.document import JsonSchema, SchemaDocument, Subschema
from stint.json_schema.outcome import Outcome
from stint.json_schema.paths import Path
from stint.json_schema.references import Resource
from stint.regex.budget import Budget

ENTRIES_PER_STEP = 8


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """A value that is being checked against a schema."""

    run: "Evaluation"
    subschema: Subschema
    value: Any
    path: Path
    outcome: Outcome

    def fail(self, keyword: str, argument: Any) -> None:
        """Record that the value does not satisfy a keyword."""
        self.outcome.add_mismatch(self.path, keyword, argument)

    def sibling(self, keyword: str) -> Any:
        """Return the value of a sibling keyword; None if it is absent or has no meaning."""
        return self.subschema.schema[keyword] if keyword in self.subschema.keywords else None

    def whole(self, schema: JsonSchema) -> "Application":
        """Return the arguments of `apply` that check the same value against another schema."""
        return schema, self.value, self.path, self.outcome.most

    def part(self, schema: JsonSchema, key: str | int) -> "Application":
        """Return the arguments of `apply` that check a property or an item, which counts as evaluated."""
        self.mark_evaluated(key)
        return schema, self.value[key], (self.path, key), self.outcome.most

    def mark_evaluated(self, key: str | int) -> None:
        """Record that a keyword has evaluated a property or an item."""
        if self.run.tracks:
            self.outcome.evaluated.add(key)


Application = tuple[JsonSchema, Any, Path, int]
"""A schema, a value, its path, and the maximum number of mismatches to find."""

Keyword = Callable[[ValueCheck, Any], None]
"""Applies a keyword, whose value is the second argument."""


class Evaluation:
    """One check of a value. `scope` has the resources that were entered, outermost first."""

    def __init__(self, document: SchemaDocument, budget: Budget, keywords: Mapping[str, Keyword]) -> None:
        self.document = document
        self.keywords = keywords
        self.budget = budget
        self.tracks = document.tracks_evaluated
        self.scope: list[Resource] = []
        self._known: dict[tuple[int, int, int], Outcome] = {}

    def apply(self, schema: JsonSchema, value: Any, path: Path, most: int) -> Outcome:
        """Check the value at `path` until `most` mismatches are found.

        The outcome for an object or array is cached by schema: nested alternatives, as in a recursive union, would
        take time exponential in the depth. With several resources the outcome also depends on the scope.
        """
        outcome = Outcome(most)
        if isinstance(schema, bool):
            if not schema:
                outcome.add_mismatch(path, "false", None)
            return outcome
        # Ids are unique while document and value live, which is as long as this evaluation.
        key = (id(schema), id(value), most)
        if (known := self._known.get(key)) is not None:
            return known
        subschema = self.document.subschemas[id(schema)]
        # Before the work, and also for alternatives whose outcome is dropped.
        self.budget.spend(4 + 2 * len(subschema.keywords))
        self.scope.append(subschema.resource)
        check = ValueCheck(self, subschema, value, path, outcome=outcome)
        for keyword in subschema.keywords:
            if keyword in self.keywords and not outcome.is_full:
                self.keywords[keyword](check, schema[keyword])
        self.scope.pop()
        self.budget.spend(len(outcome.evaluated) // ENTRIES_PER_STEP)
        # Other values have no parts, so checking them again is as cheap as a look-up, and small integers share their
        # ids.
        if isinstance(value, dict | list) and len(self.document.resources) < 2:
            self._known[key] = outcome
        return outcome
