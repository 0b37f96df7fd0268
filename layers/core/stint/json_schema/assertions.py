"""Keywords that have no subschemas.

A keyword that does not apply to the type of a value accepts it, as the specification says: `minLength` says nothing
about a number. Values are compared as JSON: 1 is 1.0, and true is not 1 (`literals.py`), although Python thinks
otherwise. Whatever takes time in proportion to a caller's value or schema charges the budget: lists of names, unique
items, patterns, and `multipleOf` with numbers of any length. What takes a constant time is in the charge that
`Evaluation.apply` makes for each keyword.
"""

from collections.abc import Callable, Sized
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

from stint.json_schema.check import ENTRIES_PER_STEP, Keyword, ValueCheck
from stint.json_schema.dialects import DRAFT_4
from stint.json_schema.forms import is_number
from stint.json_schema.literals import key_of

LARGE = 2**64
"""Numbers above it take longer to divide than others."""
STEPS_OF_LARGE = 100
"""Steps of a division of such a number, or of decimal fractions."""


def check_type(check: ValueCheck, argument: Any) -> None:
    types = argument if isinstance(argument, list) else [argument]
    if not any(is_of_type(check.value, each, check.run.document.version) for each in types):
        check.fail("type", argument)


def is_of_type(value: Any, name: str, version: int) -> bool:
    match name:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case "number":
            return is_number(value)
        case _:
            whole = isinstance(value, int) or (version > DRAFT_4 and isinstance(value, float) and value.is_integer())
            return whole and is_number(value)


def check_literals(keyword: str) -> Keyword:
    """Make the check of `enum` or `const`."""

    def check_keyword(check: ValueCheck, argument: Any) -> None:
        if key_of(check.value, check.run.budget) not in check.subschema.prepared[keyword]:
            check.fail(keyword, argument)

    return check_keyword


def check_limit(keyword: str, is_within: Callable[[Any, Any], bool]) -> Keyword:
    """Make the check of a numeric limit. In draft 4, an exclusive limit is a flag beside another limit."""

    def check_keyword(check: ValueCheck, argument: Any) -> None:
        if is_number(check.value) and is_number(argument) and not is_within(check.value, argument):
            check.fail(keyword, argument)

    return check_keyword


def check_minimum(check: ValueCheck, argument: Any) -> None:
    if is_number(check.value):
        exclusive = check.sibling("exclusiveMinimum") is True
        if check.value < argument or (exclusive and check.value == argument):
            check.fail("minimum", argument)


def check_maximum(check: ValueCheck, argument: Any) -> None:
    if is_number(check.value):
        exclusive = check.sibling("exclusiveMaximum") is True
        if check.value > argument or (exclusive and check.value == argument):
            check.fail("maximum", argument)


def check_multiple(check: ValueCheck, argument: Any) -> None:
    """Check `multipleOf` with decimal fractions as they are written: 19.99 is a multiple of 0.01."""
    if not is_number(check.value):
        return
    if abs(check.value) > LARGE or isinstance(check.value, float) or isinstance(argument, float):
        check.run.budget.spend(STEPS_OF_LARGE)
    if (exact(check.value) / exact(argument)).denominator != 1:
        check.fail("multipleOf", argument)


def exact(number: float) -> Fraction:
    # The shortest decimal form of a float, since its binary value of 0.01 is another number.
    return Fraction(number if isinstance(number, int) else repr(number))


def check_size(keyword: str, kind: type[Sized], is_within: Callable[[int, Any], bool]) -> Keyword:
    """Make the check of a length limit."""

    def check_keyword(check: ValueCheck, argument: Any) -> None:
        if isinstance(check.value, kind) and not is_within(len(check.value), argument):
            check.fail(keyword, argument)

    return check_keyword


def check_pattern(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, str) and not check.subschema.prepared["pattern"].matches(check.value, check.run.budget):
        check.fail("pattern", argument)


def check_unique(check: ValueCheck, argument: Any) -> None:
    if argument and isinstance(check.value, list):
        check.run.budget.spend(len(check.value))
        if len({key_of(item, check.run.budget) for item in check.value}) < len(check.value):
            check.fail("uniqueItems", argument)


def check_required(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, dict):
        check.run.budget.spend(len(argument) // ENTRIES_PER_STEP)
        for name in argument:
            if name not in check.value:
                check.fail("required", name)


def check_dependent_required(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, dict):
        check.run.budget.spend(len(argument) // ENTRIES_PER_STEP)
        for name, names in argument.items():
            if name in check.value:
                check_required(check, names)


ASSERTIONS: dict[str, Keyword] = {
    "type": check_type,
    "enum": check_literals("enum"),
    "const": check_literals("const"),
    "minimum": check_minimum,
    "maximum": check_maximum,
    "exclusiveMinimum": check_limit("exclusiveMinimum", gt),
    "exclusiveMaximum": check_limit("exclusiveMaximum", lt),
    "multipleOf": check_multiple,
    "minLength": check_size("minLength", str, ge),
    "maxLength": check_size("maxLength", str, le),
    "pattern": check_pattern,
    "minItems": check_size("minItems", list, ge),
    "maxItems": check_size("maxItems", list, le),
    "uniqueItems": check_unique,
    "minProperties": check_size("minProperties", dict, ge),
    "maxProperties": check_size("maxProperties", dict, le),
    "required": check_required,
    "dependentRequired": check_dependent_required,
}
