"""JSON values as keys: equal values have equal keys, as JSON Schema compares them (1 is 1.0, true is not 1)."""

import json
from typing import Any

from stint.regex.budget import Budget

CHARS_PER_STEP = 8


def key_of(value: Any, budget: Budget) -> str:
    """Return a text that equal values have in common.

    It is a text so that no caller can choose keys of equal hash, which makes a set slow: hashes of texts are random.
    """
    key = json.dumps(whole(value), sort_keys=True)
    budget.spend(2 + len(key) // CHARS_PER_STEP)
    return key


def whole(value: Any) -> Any:
    """Write floats that are whole numbers as integers."""
    if isinstance(value, dict):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
