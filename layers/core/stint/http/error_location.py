"""Locations of errors in a request, such as `input[0].content[1].text`."""

from collections.abc import Sequence
from typing import Any

Part = str | int
Trace = tuple[int, bool, str]
"""The number of parts of a location that were found, whether the last one was, and their path."""


def locate_field(location: Sequence[Part], body: Any, *, missing: bool) -> str:
    """Return the path of pydantic's location; empty for the whole body.

    A location also has parts that are not in the body: names of union members, and positions in a value that was
    converted before validation. These are omitted. With `missing`, the last part is an absent field.
    """
    return trace(location, body, missing=missing)[2].removeprefix(".")


def trace(location: Sequence[Part], value: Any, *, missing: bool) -> Trace:
    """Find the parts of a location in a value. The best of several matches has the last part, and the most parts.

    A union member may have the name of a sibling field, such as `top_p` of Llama Stack's sampling strategies.
    """
    if not location:
        return 0, True, ""
    part, *rest = location
    found = []
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        found.append(prepend(f"[{part}]", trace(rest, value[part], missing=missing)))
    elif isinstance(value, dict) and part in value:
        found.append(prepend(f".{part}", trace(rest, value[part], missing=missing)))
    elif isinstance(value, dict) and missing and not rest:
        found.append((1, True, f".{part}"))
    count, last, path = trace(rest, value, missing=missing)
    return max([*found, (count, last and bool(rest), path)], key=lambda way: way[:2])


def prepend(step: str, way: Trace) -> Trace:
    count, last, path = way
    return count + 1, last, step + path
