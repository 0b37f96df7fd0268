"""Checks of values against a schema, within a budget of steps."""

from typing import Any

from stint.json_schema.applicators import APPLICATORS
from stint.json_schema.assertions import ASSERTIONS
from stint.json_schema.check import Evaluation
from stint.json_schema.document import SchemaDocument
from stint.json_schema.outcome import SchemaMismatch
from stint.regex.budget import Budget

MOST_MISMATCHES = 3
"""Mismatches that a message has. The check stops after them."""
KEYWORDS = ASSERTIONS | APPLICATORS


def find_mismatches(document: SchemaDocument, value: Any, budget: Budget) -> list[SchemaMismatch]:
    """Check a JSON value against a schema, and return the first mismatches, at most three.

    Raises:
        StepLimitExceeded: the value and the schema together cause too much work.
        RecursionError: they are nested too deeply.
    """
    return Evaluation(document, budget, KEYWORDS).apply(document.root, value, None, MOST_MISMATCHES).mismatches
