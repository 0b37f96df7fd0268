"""Parsing of JSON from outside into values that can be stored, read back and sent on.

Callers' JSON is parsed strictly. What models, servers and tools say is made storable instead of being refused, because
their run has already cost something.

A text can be valid for a parser and still fail later, in the store or in a client: single surrogates have no UTF-8, NaN
is not JSON, an integer of 5,000 digits cannot be written, and deep values exceed recursion limits. They are found here,
where the sender can be told. The number of values is bounded before a text is parsed, because small values take up to
30 times their text in memory.
"""

import json
import math
from collections.abc import Iterator
from json import JSONDecodeError
from operator import is_
from typing import Any

from pydantic_core import from_json

MAX_DEPTH = 100
"""Maximum levels of objects and arrays. JSON libraries fail at 200 or more."""

MAX_VALUES = 200_000
"""Maximum values in one text, including nested ones. Each takes up to 30 times its text in memory."""

MOST_BITS = 14_000
"""Maximum bits of an integer. Python writes none of more than 4,300 digits."""

MARKS = bytes(byte if byte in b'"[]{},' else ord("0") for byte in range(256))
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
TOO_MANY = f"more than {MAX_VALUES:,} values: send fewer, or send them as one string"


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text (RFC 8259). If an object repeats a key, the last one counts.

    Raises:
        JSONDecodeError: it is not JSON, not UTF-8, nested too deeply, or has too many values, NaN, a number that is too
            large, or a single surrogate.
    """
    try:
        data = text if isinstance(text, bytes) else text.encode()
        if has_too_many_values(data):
            raise JSONDecodeError(TOO_MANY, "", 0)
        value = from_json(data)
    except JSONDecodeError:
        raise
    except ValueError as error:
        raise JSONDecodeError(explain(text, error), "", 0) from None
    check_value(value)
    return value


def parse_leniently(text: str) -> Any:
    """Parse a server's JSON. Its texts are storable: of single surrogates, only Python's slower parser reads any.

    Raises:
        ValueError: it is not JSON, or is nested too deeply.
    """
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        pass
    try:
        return make_storable(json.loads(text))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def make_storable(value: Any, levels: int = MAX_DEPTH) -> Any:
    """Return a value of JSON's types in a form that can be stored: the same object if it already is.

    Single surrogates become `?`. A number that is infinite, NaN or too long to be written becomes null, and so does
    what is nested deeper than `levels`.
    """
    match value:
        case str():
            return storable_text(value)
        case float() if not math.isfinite(value):
            return None
        case int() if value.bit_length() > MOST_BITS:
            return None
        case dict() | list() if not levels:
            return None
        case dict():
            keys, children = [storable_text(key) for key in value], make_children_storable(value, levels)
            same = all(map(is_, keys, value)) and all(map(is_, children, value.values()))
            return value if same else dict(zip(keys, children, strict=True))
        case list():
            children = make_children_storable(value, levels)
            return value if all(map(is_, children, value)) else children
    return value


def make_children_storable(value: Any, levels: int) -> list[Any]:
    return [make_storable(child, levels - 1) for child in parts_of(value)]


def storable_text(text: str) -> str:
    """Replace single surrogates, which JSON can contain and UTF-8 cannot."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def has_too_many_values(data: bytes, limit: int | None = None) -> bool:
    """Return whether a JSON text has too many values, without parsing it. 6 MB take 30 ms and 6 MB of memory.

    A value is at the start of the text, or after a comma or an opening bracket outside of strings.
    """
    limit = MAX_VALUES if limit is None else limit
    # A cheap upper bound, which also counts commas and brackets in strings. Nearly all texts pass here.
    if data.count(b",") + data.count(b"[") + data.count(b"{") < limit:
        return False
    marks = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(MARKS, b" \t\r\n")
    if marks.count(b'"') > 4 * limit:  # every string is a value or a key
        return True
    outside = b'"'.join(marks.split(b'"')[::2])
    values = outside.count(b",") + outside.count(b"[") + outside.count(b"{")
    return values - outside.count(b"[]") - outside.count(b"{}") >= limit


def explain(text: str | bytes, error: ValueError) -> str:
    """Return the reason why a text cannot be parsed."""
    message = str(error)
    if "recursion limit" in message:
        return TOO_DEEP
    if "hex escape" in message:
        return f"{message}: \\ud800 to \\udfff must form surrogate pairs"
    try:
        if isinstance(text, bytes):
            text.decode()
    except UnicodeDecodeError:
        return "the text is not UTF-8"
    return "the text has an unpaired surrogate" if isinstance(error, UnicodeEncodeError) else message


def check_value(value: Any) -> None:
    """Check that a parsed value can be stored and written as JSON again.

    Raises:
        JSONDecodeError: it has too many values or levels, NaN, an infinite number or a single surrogate.
    """
    # Level by level instead of recursively, so that no depth exceeds Python's stack.
    level, count, depth = [value], 0, 0
    while level:
        count += len(level)
        if count > MAX_VALUES:
            raise JSONDecodeError(TOO_MANY, "", 0)
        if depth == MAX_DEPTH and any(isinstance(child, dict | list) for child in level):
            raise JSONDecodeError(TOO_DEEP, "", 0)
        for child in level:
            check_scalar(child)
        level = [child for parent in level for child in parts_of(parent)]
        depth += 1


def check_scalar(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise JSONDecodeError("NaN and infinite numbers are not JSON; a number beyond 1.8e308 is too large", "", 0)
    for text in (value,) if isinstance(value, str) else value if isinstance(value, dict) else ():
        if not text.isascii():
            check_text(text)


def check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise JSONDecodeError(f"{half} is an unpaired surrogate", "", 0) from None


def parts_of(value: Any) -> Iterator[Any]:
    """Return the values directly inside a value."""
    return iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def children_of(value: Any) -> list[Any]:
    """List the objects and arrays directly inside a value."""
    return [child for child in parts_of(value) if isinstance(child, dict | list)]
