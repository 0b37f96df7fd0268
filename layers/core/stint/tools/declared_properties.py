"""The properties that a tool's schema declares, also in the schemas that it is composed of."""

from collections.abc import Iterator
from typing import Any

MOST_SUBSCHEMAS = 1_000
"""Maximum schemas that are read. Properties of further ones are not declared."""

IN_LISTS = ("allOf", "anyOf", "oneOf")
IN_PLACE = ("if", "then", "else")


def declared_properties(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of properties by their names. One that is false is not declared."""
    found: dict[str, Any] = {}
    waiting, seen = [schema], {id(schema)}
    while waiting and len(seen) <= MOST_SUBSCHEMAS:
        part = waiting.pop(0)
        properties = part.get("properties")
        if isinstance(properties, dict):
            # The outer schema was read first, and its properties come before those of the schemas it is composed of.
            found = {name: each for name, each in properties.items() if each is not False} | found
        for inner in composed_of(part, schema):
            if isinstance(inner, dict) and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return found


def composed_of(part: dict[str, Any], root: dict[str, Any]) -> Iterator[Any]:
    """Yield the schemas that may apply to the same object as a schema."""
    for keyword in IN_LISTS:
        inner = part.get(keyword)
        yield from inner if isinstance(inner, list) else ()
    yield from (part.get(keyword) for keyword in IN_PLACE)
    dependent = part.get("dependentSchemas")
    yield from dependent.values() if isinstance(dependent, dict) else ()
    yield look_up(part.get("$ref"), root)


def look_up(reference: Any, root: dict[str, Any]) -> Any:
    """Return what a JSON pointer (RFC 6901) to a place in the same schema refers to; None if it is nothing."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for name in reference[1:].split("/")[1:]:
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
