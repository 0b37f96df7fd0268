"""Filters of attributes as filters of S3 Vectors, which let through at least the chunks that match.

S3 Vectors compares only numbers by size, and treats values of different types as unequal. What it finds is filtered
again.
"""

from hashlib import sha256
from typing import Any

from stint.domain.filters import ComparisonFilter, Filter

Condition = dict[str, Any]
CONSTRAINTS = 90
"""Constraints of a filter. S3 Vectors accepts 100, and up to three are added."""
WIDE, ZERO = "wide", "zero"
"""Metadata of a chunk whose attributes are not in the metadata, and of one whose vector is a replacement for zeros."""
NOT_ZERO: Condition = {ZERO: {"$exists": False}}


class UnsatisfiableFilter(Exception):
    """No attributes match a filter."""


def attribute_name(key: str) -> str:
    """Return the metadata key of an attribute. Keys in metadata have up to 63 characters, and none begins with `$`."""
    plain = key.isascii() and key.replace("-", "").replace("_", "").isalnum() and len(key) <= 60
    return f"a_{key}" if plain else f"h_{sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def index_filter(condition: Filter | None, *, by_vector: bool) -> Condition | None:
    """Return the filter of a query, None if there is none. Raises UnsatisfiableFilter."""
    parts = [NOT_ZERO] if by_vector else []
    narrowed = None if condition is None else narrow(condition)
    if narrowed is not None and count(narrowed) <= CONSTRAINTS:
        parts.append({"$or": [narrowed, {WIDE: {"$eq": True}}]})
    return {"$and": parts} if len(parts) > 1 else next(iter(parts), None)


def narrow(condition: Filter) -> Condition | None:
    """Return a condition that is true for all that match, None if there is none. Raises UnsatisfiableFilter."""
    if isinstance(condition, ComparisonFilter):
        return narrow_comparison(condition)
    if condition.type == "and":
        parts = [part for each in condition.filters if (part := narrow(each)) is not None]
        return {"$and": parts} if parts else None
    return narrow_any([each for each in condition.filters if not is_unsatisfiable(each)])


def narrow_any(conditions: list[Filter]) -> Condition | None:
    if not conditions:
        raise UnsatisfiableFilter
    parts = [narrow(each) for each in conditions]
    # One alternative that lets everything through makes the others useless.
    return None if None in parts else {"$or": parts}


def is_unsatisfiable(condition: Filter) -> bool:
    try:
        narrow(condition)
    except UnsatisfiableFilter:
        return True
    return False


def narrow_comparison(condition: ComparisonFilter) -> Condition:
    name, kind, value = attribute_name(condition.key), condition.type, condition.value
    exists: Condition = {name: {"$exists": True}}
    if kind == "in" and not value:
        raise UnsatisfiableFilter
    if value == [] or not all(map(is_plain, value if isinstance(value, list) else [value])):
        return exists
    if kind in ("eq", "in"):
        return {name: {f"${kind}": value}}
    if kind in ("ne", "nin"):
        return {"$and": [exists, {name: {f"${kind}": value}}]}
    # Texts have no order in S3 Vectors.
    return exists if isinstance(value, bool | str) else {name: {f"${kind}": value}}


def is_plain(value: object) -> bool:
    """Return whether a value can be in metadata and is compared exactly: no empty text, no number over 53 bits."""
    if isinstance(value, str):
        return value != "" and not any("\ud800" <= each <= "\udfff" or each == "\0" for each in value)
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 2**53)


def count(condition: Condition) -> int:
    """Return the number of constraints."""
    return sum(sum(map(count, value)) if name in ("$and", "$or") else len(value) for name, value in condition.items())
