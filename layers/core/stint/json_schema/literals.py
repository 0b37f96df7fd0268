"""JSON values as keys: equal values have equal keys, as JSON Schema compares them (1 is 1.0, true is not 1)."""

import json
from typing import Any

from stint.regex.budget import Budget

CHARS_PER_STEP = 8


def key_of(value: Any, budget: Budget) -> str:
    """Return a text that is the same for equal values.

    It is a text because hashes of texts are randomised: no caller can make a set slow with keys of equal hash.
    """
    key = json.dumps(whole(value), sort_keys=True)
    budget.spend(2 + len(key) // CHARS_PER_STEP)
    return key


def whole(value: Any) -> Any:
    """Return floats that are whole numbers as integers."""
    if isinstance(value, dict):
        return {name: whole(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
