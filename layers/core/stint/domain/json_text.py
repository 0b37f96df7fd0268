"""JSON from outside, read strictly: what passes can be stored, read back and sent on."""

import json
from json import JSONDecodeError
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Levels of objects and arrays. The libraries that write and read JSON give up at 200 or more."""


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text (RFC 8259).

    Raises:
        JSONDecodeError: it is no JSON, not UTF-8, nested too deep, or holds NaN, an infinite number or half of a
            surrogate pair, which Python's parser lets pass.
    """
    try:
        source = text.decode() if isinstance(text, bytes) else text
        value = json.loads(source, parse_constant=refuse_constant, parse_float=parse_finite)
    except RecursionError:
        raise JSONDecodeError(f"nested deeper than {MAX_DEPTH} levels", "", 0) from None
    except UnicodeDecodeError as error:
        raise JSONDecodeError("the text is not UTF-8", "", error.start) from None
    except JSONDecodeError:
        raise
    except ValueError as error:
        raise JSONDecodeError(str(error), "", 0) from None
    if is_deep(value):
        raise JSONDecodeError(f"nested deeper than {MAX_DEPTH} levels", "", 0)
    if "\\ud" in source.lower():
        refuse_half_characters(value)
    return value


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse_finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {digits[:40]} is too large")
    return number


def is_deep(value: Any) -> bool:
    """Tell whether a value has more than MAX_DEPTH levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in children_of(parent)]
        if not level:
            return False
    return True


def children_of(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in children if isinstance(child, dict | list)]


def refuse_half_characters(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise JSONDecodeError(f"{half} is half of a surrogate pair", "", 0) from None
