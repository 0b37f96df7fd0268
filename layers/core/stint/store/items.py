"""Items in DynamoDB's form, and their costs."""

from typing import Any

Item = dict[str, Any]
"""A record: attribute names with values of type str, int or bytes."""

WRITE_UNIT = 1024


def encode(item: Item) -> dict[str, Any]:
    """Return a record in DynamoDB's typed form."""
    return {name: _typed(value) for name, value in item.items()}


def decode(item: dict[str, Any]) -> Item:
    """Return a record from DynamoDB's typed form."""
    return {name: int(typed["N"]) if "N" in typed else next(iter(typed.values())) for name, typed in item.items()}


def size(item: Item) -> int:
    """Return an item's bytes, of names and values.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum([len(name.encode()) + _size(value) for name, value in item.items()])


def write_units(item: Item) -> int:
    return -(-size(item) // WRITE_UNIT)


def _size(value: str | bytes | int) -> int:
    if isinstance(value, int):
        return 1 + (len(str(abs(value)).rstrip("0")) + 1) // 2 + (value < 0)
    return len(value.encode() if isinstance(value, str) else value)


def _typed(value: str | bytes | int) -> dict[str, Any]:
    if isinstance(value, int):
        return {"N": str(value)}
    return {"B" if isinstance(value, bytes) else "S": value}


def mark_of(compaction: object) -> Item:
    """Return the attribute of a record that replaces all records before it, if it has a compaction."""
    return {"compacts": 1} if compaction else {}
