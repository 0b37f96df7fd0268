"""Headers of stateless calls that repeat parts of the body, so that servers in between need not read it.

A value that is no plain ASCII is sent in base64, as `=?base64?...?=`. A tool's schema may ask for the value of a
property by `x-mcp-header`. The property is found from the root through `properties` only, and is a string, an integer
or a boolean. A tool that asks for anything else, or for too many headers, is not offered, as the revision demands.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stint.domain.json_text import children_of

MARK = "x-mcp-header"
PREFIX = "Mcp-Param-"
PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
ENCODED = re.compile(r"=\?base64\?.*\?=")
TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}")
TYPES = frozenset({"string", "integer", "boolean"})
DATA = frozenset({"default", "examples", "const", "enum"})
"""Keywords whose values are no schemas."""
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
"""Keywords whose values are schemas by names, which may be any."""

MOST_MARKS = 32
"""Maximum headers of a tool."""

Path = tuple[str, ...]


class InvalidMark(ValueError):
    """A schema asks for a header where none can be sent."""


def encode_value(value: str) -> str:
    """Return a text as the value of a header."""
    if value == "" or (PLAIN.fullmatch(value) and not ENCODED.fullmatch(value)):
        return value
    return f"=?base64?{base64.b64encode(value.encode(errors='surrogatepass')).decode()}?="


def find_marks(schema: Any) -> dict[Path, str]:
    """Return the headers that a tool's schema asks for, by the paths of their properties. Raises InvalidMark."""
    marks: dict[Path, str] = {}
    folded: set[str] = set()
    for path, part in walk(schema):
        if MARK not in part:
            continue
        token, kind = part[MARK], part.get("type")
        if not path or not isinstance(token, str) or not TOKEN.fullmatch(token):
            raise InvalidMark
        if not isinstance(kind, str) or kind not in TYPES or token.lower() in folded or len(marks) == MOST_MARKS:
            raise InvalidMark
        marks[path] = token
        folded.add(token.lower())
    return marks


def walk(schema: Any) -> Iterator[tuple[Path | None, Mapping[str, Any]]]:
    """Yield the parts of a schema with their paths through `properties`; None for the others."""
    stack: list[tuple[Path | None, Any]] = [((), schema)]
    while stack:
        path, part = stack.pop()
        if isinstance(part, list):
            stack += [(None, each) for each in part]
        if not isinstance(part, dict):
            continue
        yield path, part
        for keyword, value in part.items():
            if keyword == "properties" and isinstance(value, dict):
                stack += [(None if path is None else (*path, name), each) for name, each in value.items()]
            elif keyword in NAMED:
                stack += [(None, each) for each in children_of(value)]
            elif keyword not in DATA and isinstance(value, dict | list):
                stack.append((None, value))


def param_headers(schema: Any, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a tool's schema asks for. Raises InvalidMark."""
    found = {token: value_at(arguments, path) for path, token in find_marks(schema).items()}
    return {PREFIX + token: encode_value(text_of(value)) for token, value in found.items() if is_scalar(value)}


def value_at(arguments: Mapping[str, Any], path: Path) -> Any:
    value: Any = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def text_of(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
