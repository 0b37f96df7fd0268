"""Values of a JSON schema, taken from a user's text by fixed rules.

The scripted model must call a tool with arguments that a reader can foresee. So nothing is random, and the text is read
by these rules:

    a JSON object in the text        it is the arguments, whatever the schema says
    `key=value`                      these arguments, declared or not; they are removed from the text
    required, with a constant        the constant
    required, with options           the first option that is a word of the text
    required numbers                 the numbers of the text, in their order
    required texts                   the quoted texts, then the last words that are not function words
    booleans                         true, unless the text has a word of denial
    missing numbers and texts        the schema's default, or else 0 and an empty text

Schemas and texts come from callers, so the searches in them have limits.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.json_text import parse_json

PAIR = re.compile(r"(?<![\w.])([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s,;]+)")
QUOTED = re.compile(r"\"([^\"]*)\"|(?<!\w)'([^']*)'(?!\w)")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
WORD = re.compile(r"[^\W\d_][\w'-]*")
DENIAL = re.compile(r"\b(?:no|not|false|off|without)\b", re.IGNORECASE)
SMALL_WORDS = re.compile(
    r"an?|and|answer|ask|at|by|call|for|from|in|is|it|of|on|or|please|run|the|then|this|to|tool|use|using|with",
    re.IGNORECASE,
)


LONGEST_CHOSEN, MOST_CHOICES, MOST_PLACES = 5_000, 5_000, 20
"""Maximum characters of a message, options of an enum, and occurrences of each option that are checked."""

NOTHING: dict[str, Any] = {"type": "null"}
MOST_PARTS, MOST_REFERENCES = 2_000, 20
"""Maximum parts of a value, and references on the way to one, which can double at every step. The rest is null."""


def read_arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Read a tool's arguments from a text: a JSON object, or `key=value` pairs and other required parameters."""
    written = _json_object(text)
    if written is not None:
        return written
    pairs = {key: _literal(value) for key, value in PAIR.findall(text)}
    missing = [name for name in list_of(schema.get("required")) if isinstance(name, str) and name not in pairs]
    filled = fill_schema(PAIR.sub(" ", text), {**schema, "type": "object", "required": missing})
    return {**object_of(filled), **pairs}


def fill_schema(text: str, schema: dict[str, Any]) -> Any:
    """Make a value of a JSON schema from a text, with required properties only.

    Numbers are used in order. Strings are the quoted texts, then the last words that are not function words. References
    are followed. The first alternative that is not null is used. A recursive value ends with an empty list or null.
    """
    schema = expand(schema)
    strings = _count_strings(schema)
    quoted = [double or single for double, single in QUOTED.findall(text)]
    bare = QUOTED.sub(" ", text)
    words = [word for word in WORD.findall(bare) if not SMALL_WORDS.fullmatch(word)]
    missing = max(strings - len(quoted), 0)
    last_words = words[max(len(words) - missing, 0) :]
    return _fill(schema, _Source(bare, iter(quoted + last_words), iter(NUMBER.findall(bare))))


@dataclass(slots=True)
class _Source:
    text: str
    texts: Iterator[str]
    numbers: Iterator[str]


def _fill(schema: dict[str, Any], source: _Source) -> Any:
    if "const" in schema:
        return schema["const"]
    if list_of(schema.get("enum")):
        return _choice(schema, source.text[:LONGEST_CHOSEN].lower())
    match type_of(schema):
        case "object":
            filled = {name: _fill(part, source) for name, part in required_parts(schema)}
            return filled or _json_object(source.text) or {}
        case "array":
            return [_fill(object_of(schema.get("items")), source)]
        case "integer":
            return int(_number(schema, source))
        case "number":
            number = _number(schema, source)
            return int(number) if number.is_integer() else number
        case "boolean":
            return DENIAL.search(source.text) is None
        case "null":
            return None
        case _:
            return next(source.texts, schema.get("default") or "")


def _number(schema: dict[str, Any], source: _Source) -> float:
    default = schema.get("default")
    written = next(source.numbers, default if isinstance(default, int | float) else 0)
    try:
        number = float(written)
    except OverflowError:
        return 0.0
    return number if math.isfinite(number) else 0.0


def _choice(schema: dict[str, Any], text: str) -> Any:
    """Return the first option that is a word of a lowercase text, or else the default or the first option."""
    options = schema["enum"]
    found = (option for option in options[:MOST_CHOICES] if _has_word(text, str(option).lower()))
    return next(found, schema.get("default", options[0]))


def _has_word(text: str, word: str) -> bool:
    place = text.find(word) if word else -1
    for _ in range(MOST_PLACES):
        if place < 0:
            break
        before, after = text[max(place - 1, 0) : place], text[place + len(word) : place + len(word) + 1]
        if not (_is_word(before) and _is_word(word[0])) and not (_is_word(word[-1]) and _is_word(after)):
            return True
        place = text.find(word, place + 1)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _count_strings(schema: dict[str, Any]) -> int:
    if "const" in schema or list_of(schema.get("enum")):
        return 0
    match type_of(schema):
        case "object":
            return sum(_count_strings(part) for _, part in required_parts(schema))
        case "array":
            return _count_strings(object_of(schema.get("items")))
        case "integer" | "number" | "boolean" | "null":
            return 0
        case _:
            return 1


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
        return parse_json(value)
    except ValueError:
        return value.strip("\"'")


def expand(schema: Any) -> dict[str, Any]:
    """Replace references by their targets, and alternatives by one of them.

    Schemas come from callers, so any part of one may be malformed.
    """
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
