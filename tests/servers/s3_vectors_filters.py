"""Metadata filters of S3 Vectors."""

from collections.abc import Iterator
from typing import Any

from tests.servers.s3_vectors_model import Refused

CONSTRAINTS = 100
ORDERED = ("$gt", "$gte", "$lt", "$lte")
Filter = dict[str, Any] | None


def check_filter(condition: Filter, hidden: set[str]) -> None:
    """Refuse a filter that S3 Vectors does not support."""
    if condition is None:
        return
    found = list(constraints(condition))
    if not 0 < len(found) <= CONSTRAINTS:
        raise Refused.invalid("filter", f"1 to {CONSTRAINTS} constraints")
    for key, operator, value in found:
        if key in hidden:
            raise Refused.invalid("filter", f"Filtering on non-filterable key {key}")
        check_constraint(operator, value)


def check_constraint(operator: str, value: Any) -> None:
    if operator in ORDERED and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Refused.invalid("filter", f"{operator} needs a number")
    if operator in ("$in", "$nin") and not (isinstance(value, list) and value):
        raise Refused.invalid("filter", f"{operator} needs a list that is not empty")
    if operator == "$exists" and not isinstance(value, bool):
        raise Refused.invalid("filter", "$exists needs true or false")
    if operator in ("$eq", "$ne") and not isinstance(value, str | int | float | bool):
        raise Refused.invalid("filter", f"{operator} needs a value")
    if operator not in (*ORDERED, "$in", "$nin", "$exists", "$eq", "$ne"):
        raise Refused.invalid("filter", f"unknown operator {operator}")


def constraints(condition: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, value in condition.items():
        if key in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise Refused.invalid("filter", f"{key} needs a list that is not empty")
            for each in value:
                yield from constraints(each)
        elif key.startswith("$"):
            raise Refused.invalid("filter", f"unknown operator {key}")
        else:
            for operator, operand in (value if isinstance(value, dict) else {"$eq": value}).items():
                yield key, operator, operand


def matches(condition: Filter, metadata: dict[str, Any]) -> bool:
    """Return whether metadata match all parts of a filter."""
    return all(matches_part(key, value, metadata) for key, value in (condition or {}).items())


def matches_part(key: str, value: Any, metadata: dict[str, Any]) -> bool:
    if key == "$and":
        return all(matches(each, metadata) for each in value)
    if key == "$or":
        return any(matches(each, metadata) for each in value)
    operators = value if isinstance(value, dict) else {"$eq": value}
    return all(holds(operator, operand, key, metadata) for operator, operand in operators.items())


def holds(operator: str, operand: Any, key: str, metadata: dict[str, Any]) -> bool:
    if operator == "$exists":
        return (key in metadata) is operand
    if key not in metadata:
        return False
    found = metadata[key] if isinstance(metadata[key], list) else [metadata[key]]
    if operator in ("$eq", "$in"):
        return any(equal(each, one) for each in found for one in (operand if operator == "$in" else [operand]))
    if operator in ("$ne", "$nin"):
        return not any(equal(each, one) for each in found for one in (operand if operator == "$nin" else [operand]))
    return any(ordered(operator, each, operand) for each in found)


def equal(one: Any, other: Any) -> bool:
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def ordered(operator: str, found: Any, limit: float) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return {"$gt": found > limit, "$gte": found >= limit, "$lt": found < limit, "$lte": found <= limit}[operator]
