"""JSON objects without ambiguity: one value for each name, and no number that is not finite."""

import json
from math import isinf
from typing import Any


def read_object(text: bytes | str) -> dict[str, Any]:
    """Return a JSON object. Raises ValueError for any other text."""
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None
    if not isinstance(value, dict):
        raise ValueError("The JSON is not an object.")
    return value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    # `json` takes the last value of a name that occurs twice. Another reader of the same token may take the first one.
    if len(values) < len(pairs):
        raise ValueError("The JSON has a name twice.")
    return values


def refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON.")


def finite(text: str) -> float:
    if isinf(number := float(text)):
        raise ValueError("The JSON has a number that is too large.")
    return number
