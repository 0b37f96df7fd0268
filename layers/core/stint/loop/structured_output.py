"""Structured output: a JSON schema before a turn begins, and the answer against it at the end."""

from json import JSONDecodeError, dumps
from typing import Any

from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.json_text import parse_json
from stint.json_schema.document import SchemaDocument
from stint.json_schema.errors import SchemaError
from stint.json_schema.evaluation import find_mismatches
from stint.json_schema.outcome import SchemaMismatch
from stint.json_schema.paths import shorten, write_path
from stint.regex.budget import Budget, OutOfSteps

MISMATCH = "response_format_mismatch"
MOST_STEPS = 500_000
"""Steps to check one answer, about half a second."""


def check_schema(schema: dict[str, Any], field: str) -> None:
    """Check that answers can be checked against the schema that `field` of a request holds.

    Raises:
        InvalidRequest: it is no valid JSON schema (of the version that `$schema` names, else 2020-12), refers outside
            of itself or to nothing, has no end, is too much work, or has regular expressions that are not supported;
            the message says where.
    """
    try:
        SchemaDocument(schema)
    except SchemaError as error:
        raise InvalidRequest(
            f"{field} is not a schema that answers can be checked against: {error}.",
            code="invalid_json_schema",
            param=field,
        ) from None


def validate_output(text: str, schema: dict[str, Any]) -> None:
    """Check a whole answer against a schema that `check_schema` has passed.

    Raises:
        ModelError: (`response_format_mismatch`) the answer is no JSON, departs from the schema, or is too large to be
            checked against it; the message says where, and not what it holds there, as it is logged.
    """
    try:
        value = parse_json(text)
    except JSONDecodeError as error:
        raise mismatch(f"it is not JSON: {shorten(str(error))}") from None
    try:
        mismatches = find_mismatches(SchemaDocument(schema), value, Budget(MOST_STEPS))
    except (RecursionError, OutOfSteps):
        raise mismatch("it is too deep or too large to be checked against this schema") from None
    if mismatches:
        raise mismatch("; ".join(map(describe, mismatches)))


def describe(mismatch: SchemaMismatch) -> str:
    """Write where an answer departs from what."""
    where = f"at {write_path(mismatch.path)}"
    if mismatch.keyword == "required":
        return f"{where}: {shorten(repr(mismatch.argument))} is a required property"
    if mismatch.keyword == "false":
        return f"{where}: nothing may be there"
    return f"{where}: it does not satisfy {mismatch.keyword} {shorten(dumps(mismatch.argument))}"


def mismatch(problem: str) -> ModelError:
    return ModelError(
        f"The model's answer does not have the form that response_format asks for: {problem}.", code=MISMATCH
    )
