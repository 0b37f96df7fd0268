"""Items in DynamoDB's form, and their costs."""

from typing import Any

Item = dict[str, Any]
"""A record: attribute names with values of type str, int or bytes."""

WRITE_UNIT = 1024


def encode(item: Item) -> dict[str, Any]:
    """Return a record in DynamoDB's typed form."""
    # Most values are texts.
    return {name: {"S": value} if isinstance(value, str) else _typed(value) for name, value in item.items()}


def decode(item: dict[str, Any]) -> Item:
    """Return a record from DynamoDB's typed form."""
    return {name: int(typed["N"]) if "N" in typed else next(iter(typed.values())) for name, typed in item.items()}


def size(item: Item) -> int:
    """Return an item's bytes, of names and values.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    values = [len(value.encode()) if isinstance(value, str) else _size(value) for value in item.values()]
    return len("".join(item).encode()) + sum(values)


def write_units(item: Item) -> int:
    return -(-size(item) // WRITE_UNIT)


def _size(value: bytes | int) -> int:
    if isinstance(value, int):
        return 1 + (len(str(abs(value)).rstrip("0")) + 1) // 2 + (value < 0)
    return len(value)


def _typed(value: bytes | int) -> dict[str, Any]:
    return {"N": str(value)} if isinstance(value, int) else {"B": value}


def mark_of(compaction: object) -> Item:
    """Return the attribute of a record that replaces all records before it, if it has a compaction."""
    return {"compacts": 1} if compaction else {}
