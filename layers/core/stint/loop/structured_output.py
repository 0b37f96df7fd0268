"""Structured output: the check of a schema before the run, and of the answer at its end.

The modules that evaluate schemas are loaded with the first schema.
"""

from json import JSONDecodeError, dumps
from typing import TYPE_CHECKING, Any

from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.json_text import parse_json

if TYPE_CHECKING:
    from stint.json_schema.outcome import SchemaMismatch

MISMATCH = "response_format_mismatch"
MOST_STEPS = 500_000
"""Maximum steps for the check of one answer, about half a second."""


def check_schema(schema: dict[str, Any], field: str) -> None:
    """Check the schema in `field` of a request.

    Raises:
        InvalidRequest: it is not a valid JSON schema (of the version in `$schema`, or else 2020-12), has a reference
        that
            leads outside or nowhere, recurses without end, is too complex, or has an unsupported regular expression.
            The message says where.
    """
    from stint.json_schema.document import SchemaDocument  # noqa: PLC0415
    from stint.json_schema.errors import SchemaError  # noqa: PLC0415

    try:
        SchemaDocument(schema)
    except SchemaError as error:
        raise InvalidRequest(
            f"{field} is not a supported schema: {error}.",
            code="invalid_json_schema",
            param=field,
        ) from None


def validate_output(text: str, schema: dict[str, Any]) -> None:
    """Check a whole answer against a schema that `check_schema` accepted.

    Raises:
        ModelError: (`response_format_mismatch`) the answer is not JSON, does not match the schema, or is too large for
            the check. The message says where, without the value, because it is logged.
    """
    from stint.json_schema.document import SchemaDocument  # noqa: PLC0415
    from stint.json_schema.evaluation import find_mismatches  # noqa: PLC0415
    from stint.json_schema.paths import shorten  # noqa: PLC0415
    from stint.regex.budget import Budget, StepLimitExceeded  # noqa: PLC0415

    try:
        value = parse_json(text)
    except JSONDecodeError as error:
        raise mismatch(f"it is not JSON: {shorten(str(error))}") from None
    try:
        mismatches = find_mismatches(SchemaDocument(schema), value, Budget(MOST_STEPS))
    except (RecursionError, StepLimitExceeded):
        raise mismatch("it is too deep or too large to be checked against this schema") from None
    if mismatches:
        raise mismatch("; ".join(map(describe, mismatches)))


def describe(mismatch: "SchemaMismatch") -> str:
    """Return the location and the keyword of a mismatch."""
    from stint.json_schema.paths import shorten, write_path  # noqa: PLC0415

    where = f"at {write_path(mismatch.path)}"
    if mismatch.keyword == "required":
        return f"{where}: {shorten(repr(mismatch.argument))} is a required property"
    if mismatch.keyword == "false":
        return f"{where}: no value is allowed here"
    return f"{where}: it does not satisfy {mismatch.keyword} {shorten(dumps(mismatch.argument))}"


def mismatch(problem: str) -> ModelError:
    return ModelError(f"The model's answer does not match response_format: {problem}.", code=MISMATCH)
