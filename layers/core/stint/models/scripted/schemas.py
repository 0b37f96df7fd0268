"""JSON schemas without references and alternatives, from which the scripted model makes values.

They come from callers, so any part of them may be malformed.
"""

from typing import Any

NOTHING: dict[str, Any] = {"type": "null"}
MOST_PARTS, MOST_REFERENCES = 2_000, 20
"""Maximum parts of a value, and references on the way to one, which can double at every step. The rest is null."""


def expand(schema: Any) -> dict[str, Any]:
    """Replace references by their targets, and alternatives by one of them."""
    schema = object_of(schema)
    return _Expansion(object_of(schema.get("$defs") or schema.get("definitions"))).expand(schema, ())


def required_parts(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the properties that a schema requires and describes."""
    properties = object_of(schema.get("properties"))
    names = [name for name in list_of(schema.get("required")) if isinstance(name, str)]
    return [(name, properties[name]) for name in names if isinstance(properties.get(name), dict)]


def type_of(schema: dict[str, Any]) -> str:
    """Return the type of a schema; of several, the first one that is not null."""
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((each for each in declared if each != "null"), "null")
    return declared if isinstance(declared, str) else "object" if "properties" in schema else "string"


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


class _Expansion:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._left = MOST_PARTS

    def expand(self, schema: Any, inside: tuple[str, ...]) -> dict[str, Any]:
        """Expand a part. `inside` has the definitions that contain it."""
        self._left -= 1
        if self._left < 0 or len(inside) > MOST_REFERENCES:
            return NOTHING
        schema = object_of(schema)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            found = self._definitions.get(name)
            is_known = name not in inside and isinstance(found, dict)
            return self.expand(found, (*inside, name)) if is_known else NOTHING
        for keyword in ("anyOf", "oneOf", "allOf"):
            if options := list_of(schema.get(keyword)):
                expanded = (self.expand(option, inside) for option in options)
                return next((option for option in expanded if type_of(option) != "null"), NOTHING)
        if "items" in schema:
            items = self.expand(schema["items"], inside)
            return {**schema, "const": []} if items is NOTHING else {**schema, "items": items}
        parts = {name: self.expand(part, inside) for name, part in required_parts(schema)}
        return {**schema, "properties": parts} if parts else schema
