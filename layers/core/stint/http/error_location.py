"""Where in a request something is wrong, as `input[0].content[1].text`."""

from collections.abc import Sequence
from typing import Any

Part = str | int
Trace = tuple[int, bool, str]
"""How many parts of a location were found, whether the last one was, and the path that they make."""


def locate_field(location: Sequence[Part], body: Any, *, missing: bool) -> str:
    """Name the field that pydantic's location leads to; empty for the body as a whole.

    A location also holds what no body has: the names of a union's members, and the places inside of what was read in
    another form than it was sent in. They are left out. With `missing`, its last part is a field that is not there.
    """
    return trace(location, body, missing=missing)[2].removeprefix(".")


def trace(location: Sequence[Part], value: Any, *, missing: bool) -> Trace:
    """Find the parts of a location in a value: of several ways one that finds most of them, and the last one.

    A member of a union may have the name of a field beside it, as `top_p` of Llama Stack's sampling strategies.
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
