"""Values for a JSON schema, taken from what a user wrote: a rule, not understanding."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_PARTS = 5_000
MOST_REFERENCES = 20
NOTHING: dict[str, Any] = {"type": "null"}
PAIR = re.compile(r"(?<![\w.])([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s,;]+)")
QUOTED = re.compile(r"\"([^\"]*)\"|(?<!\w)'([^']*)'(?!\w)")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
WORD = re.compile(r"[^\W\d_][\w'-]*")
DENIAL = re.compile(r"\b(?:no|not|false|off|without)\b", re.IGNORECASE)
SMALL_WORDS = re.compile(
    r"an?|and|answer|ask|at|by|call|for|from|in|is|it|of|on|or|please|run|the|then|this|to|tool|use|using|with",
    re.IGNORECASE,
)


def read_arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Take a tool's arguments from a text: a JSON object, or `key=value` pairs and what else the schema requires."""
    written = _json_object(text)
    if written is not None:
        return written
    pairs = {key: _literal(value) for key, value in PAIR.findall(text)}
    missing = [name for name in schema.get("required") or [] if name not in pairs]
    return {**fill_schema(PAIR.sub(" ", text), {**schema, "type": "object", "required": missing}), **pairs}


def fill_schema(text: str, schema: dict[str, Any]) -> Any:
    """Make a value of a JSON schema, required properties only, from a text.

    Numbers are taken in their order. Strings are the quoted texts, then the last words that mean something. References
    into the schema are followed; of alternatives the first that is not null is taken, and a value inside itself ends
    with an empty list or null.
    """
    schema = References(schema.get("$defs") or schema.get("definitions") or {}).expand(schema)
    strings = _count_strings(schema)
    quoted = [double or single for double, single in QUOTED.findall(text)]
    bare = QUOTED.sub(" ", text)
    words = [word for word in WORD.findall(bare) if not SMALL_WORDS.fullmatch(word)]
    missing = max(strings - len(quoted), 0)
    last_words = words[max(len(words) - missing, 0) :]
    return _fill(schema, _Source(bare, iter(quoted + last_words), iter(NUMBER.findall(bare))))


@dataclass(slots=True)
class References:
    """Puts what a schema refers to in the place of its reference, and one alternative in the place of several.

    References that double with each level would never end: after MOST_PARTS every further part is null.
    """

    definitions: dict[str, Any]
    left: int = MOST_PARTS

    def expand(self, schema: dict[str, Any], inside: tuple[str, ...] = ()) -> dict[str, Any]:
        self.left -= 1
        reference = schema.get("$ref")
        if self.left < 0 or len(inside) > MOST_REFERENCES:
            return NOTHING
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            found = self.definitions.get(name)
            return NOTHING if name in inside or not isinstance(found, dict) else self.expand(found, (*inside, name))
        for keyword in ("anyOf", "oneOf", "allOf"):
            options = [self.expand(option, inside) for option in schema.get(keyword) or []]
            if options:
                return next((option for option in options if _type_of(option) != "null"), NOTHING)
        expanded = dict(schema)
        if isinstance(schema.get("properties"), dict):
            parts = schema["properties"].items()
            expanded["properties"] = {name: self.expand(part, inside) for name, part in parts}
        if isinstance(schema.get("items"), dict):
            items = self.expand(schema["items"], inside)
            expanded = {**expanded, "const": []} if items is NOTHING else {**expanded, "items": items}
        return expanded


@dataclass(slots=True)
class _Source:
    text: str
    texts: Iterator[str]
    numbers: Iterator[str]


def _fill(schema: dict[str, Any], source: _Source) -> Any:
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return _choice(schema, source.text)
    match _type_of(schema):
        case "object":
            filled = {name: _fill(part, source) for name, part in _required(schema)}
            return filled or _json_object(source.text) or {}
        case "array":
            return [_fill(schema.get("items") or {}, source)]
        case "integer":
            return int(_number(next(source.numbers, schema.get("default"))))
        case "number":
            number = _number(next(source.numbers, schema.get("default")))
            return int(number) if number.is_integer() else number
        case "boolean":
            return DENIAL.search(source.text) is None
        case "null":
            return None
        case _:
            return next(source.texts, schema.get("default") or "")


def _number(value: Any) -> float:
    """Read a number; what is none, or is too large, is 0."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) else 0.0


def _choice(schema: dict[str, Any], text: str) -> Any:
    for option in schema["enum"]:
        if re.search(rf"\b{re.escape(str(option))}\b", text, re.IGNORECASE):
            return option
    return schema.get("default", schema["enum"][0])


def _count_strings(schema: dict[str, Any]) -> int:
    if "const" in schema or schema.get("enum"):
        return 0
    match _type_of(schema):
        case "object":
            return sum(_count_strings(part) for _, part in _required(schema))
        case "array":
            return _count_strings(schema.get("items") or {})
        case "integer" | "number" | "boolean" | "null":
            return 0
        case _:
            return 1


def _required(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    properties = schema.get("properties") or {}
    return [(name, properties[name]) for name in schema.get("required") or [] if isinstance(properties.get(name), dict)]


def _type_of(schema: dict[str, Any]) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((each for each in declared if each != "null"), "null")
    return declared if isinstance(declared, str) else "object" if "properties" in schema else "string"


def _json_object(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _literal(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value.strip("\"'")
