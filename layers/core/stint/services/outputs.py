"""Structured output: a JSON schema before a turn begins, and the answer against it at the end."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from json import JSONDecodeError, dumps
from typing import TYPE_CHECKING, Any

from stint.domain.errors import InvalidRequest, ModelError
from stint.domain.json_text import parse_json
from stint.regex.budget import Budget, OutOfSteps
from stint.regex.patterns import Patterns

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

MISMATCH = "response_format_mismatch"
LITERALS = frozenset({"enum", "const", "default", "examples"})
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
PROBES: tuple[Any, ...] = ({}, [], "", 0, None)
MOST_PROBLEMS = 3
MOST_REFERENCES = 200_000
"""References that one check follows: a schema of a few lines can double its work at every step of a chain."""


class Endless(Exception):
    """A schema's references lead on without end."""


def check_schema(schema: dict[str, Any]) -> None:
    """Check that answers can be checked against a schema. Nothing is fetched, whatever the schema refers to.

    Raises:
        InvalidRequest: it is no valid JSON schema (of the draft that `$schema` names, else 2020-12), refers outside of
            itself or to nothing, or has no end; the message says where.
    """
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - 120 ms that only structured output is to cost
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    if not isinstance(schema.get("$schema", ""), str):
        raise invalid("$schema is not a string")
    refuse_lost_references(schema)
    try:
        validator = make_validator(schema)
        validator.check_schema(schema, format_checker=validator.FORMAT_CHECKER)
        for probe in PROBES:
            list(validator.iter_errors(probe))
    except SchemaError as error:
        raise invalid(f"at {error.json_path}: {shorten(error.message)}") from None
    except (RecursionError, Endless, Unresolvable):
        raise invalid("its references lead on without end, or to nothing") from None


def validate_output(text: str, schema: dict[str, Any]) -> None:
    """Check a whole answer against a schema that `check_schema` has passed.

    Raises:
        ModelError: (`response_format_mismatch`) the answer is no JSON, or departs from the schema; says where.
    """
    from referencing.exceptions import Unresolvable  # noqa: PLC0415 - see above

    try:
        value = parse_json(text)
    except JSONDecodeError as error:
        raise mismatch(f"it is not JSON: {shorten(str(error))}") from None
    try:
        problems = list(islice(make_validator(schema).iter_errors(value), MOST_PROBLEMS))
    except (RecursionError, Endless, Unresolvable, OutOfSteps):
        raise mismatch("it is too deep or too large to be checked against this schema") from None
    if problems:
        raise mismatch("; ".join(map(describe, problems)))


def describe(problem: "ValidationError") -> str:
    """Say where an answer departs and from what; not what it holds there, as the message is logged."""
    where = f"at {shorten(problem.json_path)}"
    if problem.validator == "required":
        return f"{where}: {shorten(problem.message)}"
    return f"{where}: it does not satisfy {problem.validator} {shorten(dumps(problem.validator_value))}"


def make_validator(schema: dict[str, Any]) -> "Draft202012Validator":
    """Make a validator that fetches nothing, counts the references it follows, and bounds the time of patterns."""
    import jsonschema  # noqa: PLC0415 - see above
    from referencing import Registry  # noqa: PLC0415

    draft = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    follow, left = draft.VALIDATORS["$ref"], iter(range(MOST_REFERENCES))

    def follow_counted(validator: Any, reference: Any, instance: Any, part: Any) -> Any:
        if next(left, None) is None:
            raise Endless
        return follow(validator, reference, instance, part)

    extend: Any = jsonschema.validators.extend
    bounded: type[jsonschema.Draft202012Validator] = extend(draft, {"$ref": follow_counted, "pattern": match_pattern})
    return bounded(schema, registry=Registry())


def match_pattern(validator: Any, pattern: str, instance: Any, _: Any) -> "Iterator[ValidationError]":
    """Apply the keyword `pattern`."""
    from jsonschema import ValidationError  # noqa: PLC0415 - see above

    if validator.is_type(instance, "string") and not contains(pattern, instance):
        yield ValidationError(f"does not match {pattern!r}")


def contains(pattern: str, text: str) -> bool:
    """Search a text for a pattern, in a time that grows with the text alone where the pattern's syntax allows that."""
    try:
        return compile_bounded(pattern).search(text, Budget(MOST_REFERENCES)) is not None
    except ValueError:
        return re.search(pattern, text) is not None


@lru_cache(maxsize=32)
def compile_bounded(pattern: str) -> Patterns:
    return Patterns([pattern])


def refuse_lost_references(schema: dict[str, Any]) -> None:
    """Refuse references that lead out of a schema, or to nothing in it."""
    from referencing import Registry, Resource  # noqa: PLC0415 - see above
    from referencing.exceptions import Unresolvable  # noqa: PLC0415
    from referencing.jsonschema import DRAFT202012  # noqa: PLC0415

    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    base = resource.id() or ""
    resolver = Registry().with_resource(base, resource).resolver(base)
    for reference in references(schema):
        if not reference.startswith("#"):
            raise invalid(f"$ref {reference[:80]!r} leads out of the schema: put the part under $defs")
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise invalid(f"$ref {reference[:80]!r} leads to nothing in the schema") from None


def references(schema: Any) -> Iterator[str]:
    """Give the references of a schema, wherever they are."""
    if isinstance(schema, list):
        for part in schema:
            yield from references(part)
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(value, str):
            yield value
        elif key in NAMED and isinstance(value, dict):
            yield from references(list(value.values()))
        elif key not in LITERALS:
            yield from references(value)


def shorten(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:120]} ... {message[-60:]}"


def invalid(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"response_format.json_schema is not a schema that answers can be checked against: {problem}.",
        code="invalid_json_schema",
        param="response_format",
    )


def mismatch(problem: str) -> ModelError:
    return ModelError(
        f"The model's answer does not have the form that response_format asks for: {problem}.", code=MISMATCH
    )
