"""Checks of values against a schema, within a number of steps."""

from typing import Any

from stint.json_schema.applicators import APPLICATORS
from stint.json_schema.assertions import ASSERTIONS, ENTRIES_PER_STEP
from stint.json_schema.check import ValueCheck
from stint.json_schema.document import JsonSchema, SchemaDocument
from stint.json_schema.outcome import Outcome, SchemaMismatch
from stint.json_schema.paths import Path
from stint.json_schema.references import Resource
from stint.regex.budget import Budget

MOST_MISMATCHES = 3
KEYWORDS = ASSERTIONS | APPLICATORS


class Evaluation:
    """One check of a value. `scope` are the resources that were entered, the outermost first."""

    def __init__(self, document: SchemaDocument, budget: Budget) -> None:
        self.document = document
        self.budget = budget
        self.tracks = document.tracks_evaluated
        self.scope: list[Resource] = []
        self._known: dict[tuple[int, int, int], Outcome] = {}

    def apply(self, schema: JsonSchema, value: Any, path: Path, most: int) -> Outcome:
        """Check a value, which is at `path`, until `most` mismatches are found.

        Objects and arrays are checked once against a schema: alternatives inside alternatives, as a recursive union has
        them, would take a time exponential in the depth. With several resources the outcome depends on the scope, too.
        """
        outcome = Outcome(most)
        if isinstance(schema, bool):
            if not schema:
                outcome.add(path, "false", None)
            return outcome
        key = (id(schema), id(value), most)
        if (known := self._known.get(key)) is not None:
            return known
        subschema = self.document.subschemas[id(schema)]
        self.budget.spend(4 + 2 * len(subschema.keywords))
        self.scope.append(subschema.resource)
        check = ValueCheck(self, subschema, value, path, outcome)
        for keyword in subschema.keywords:
            if keyword in KEYWORDS and not outcome.is_full:
                KEYWORDS[keyword](check, schema[keyword])
        self.scope.pop()
        self.budget.spend(len(outcome.evaluated) // ENTRIES_PER_STEP)
        if isinstance(value, dict | list) and len(self.document.resources) < 2:
            self._known[key] = outcome
        return outcome


def find_mismatches(document: SchemaDocument, value: Any, budget: Budget) -> list[SchemaMismatch]:
    """Check a JSON value against a schema; return the first mismatches, at most three.

    Raises:
        OutOfSteps: value and schema together are too much work.
        RecursionError: they are nested too deep.
    """
    return Evaluation(document, budget).apply(document.root, value, None, MOST_MISMATCHES).mismatches
