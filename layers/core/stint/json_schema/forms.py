"""The forms of the values of keywords, and which of them contain subschemas.

FORMS is the list of the keywords that have a meaning here. A name that it lacks is ignored, as the specification
demands of unknown keywords. Each form is a function of the value and the version, with the text that completes the
message `... is ...`. Which version has a keyword at all is in `dialects.py`.
"""

from collections.abc import Callable
from typing import Any

from stint.json_schema.dialects import DRAFT_4, DRAFT_2019

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

Form = Callable[[Any, int], bool]
"""A function that returns whether a value has a form in a version of JSON Schema."""


def is_number(value: Any, _: int = 0) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_positive(value: Any, _: int) -> bool:
    return is_number(value) and value > 0


def is_count(value: Any, _: int) -> bool:
    # 2.0 is a whole number in JSON Schema.
    return is_number(value) and value >= 0 and int(value) == value


def is_exclusive_limit(value: Any, version: int) -> bool:
    return isinstance(value, bool) if version == DRAFT_4 else is_number(value)


def is_text(value: Any, _: int) -> bool:
    return isinstance(value, str)


def is_flag(value: Any, _: int) -> bool:
    return isinstance(value, bool)


def is_anything(_: Any, __: int) -> bool:
    return True


def is_list(value: Any, _: int) -> bool:
    return isinstance(value, list)


def is_names(value: Any, _: int) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def is_map_of_names(value: Any, version: int) -> bool:
    return isinstance(value, dict) and all(is_names(names, version) for names in value.values())


def is_types(value: Any, _: int) -> bool:
    # An empty list of types would accept nothing.
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def is_schema(value: Any, version: int) -> bool:
    return isinstance(value, dict) or (isinstance(value, bool) and version > DRAFT_4)


def is_schema_or_flag(value: Any, _: int) -> bool:
    return isinstance(value, dict | bool)


def is_schemas(value: Any, version: int) -> bool:
    return isinstance(value, list) and bool(value) and all(is_schema(each, version) for each in value)


def is_map_of_schemas(value: Any, version: int) -> bool:
    return isinstance(value, dict) and all(is_schema(each, version) for each in value.values())


def is_items(value: Any, version: int) -> bool:
    if version <= DRAFT_2019 and isinstance(value, list):
        return all(is_schema(each, version) for each in value)
    return is_schema(value, version)


def is_dependencies(value: Any, version: int) -> bool:
    return isinstance(value, dict) and all(
        is_schema(each, version) or is_names(each, version) for each in value.values()
    )


SCHEMA_KEYWORDS = frozenset({"not", "if", "then", "else", "items", "contains", "propertyNames"})
SCHEMA_KEYWORDS |= {"additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties"}
LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAP_KEYWORDS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})

FORMS: dict[str, tuple[Form, str]] = {
    "type": (is_types, f"not a type: the types are {', '.join(TYPES)}"),
    "multipleOf": (is_positive, "not a number above 0"),
    **dict.fromkeys(("maximum", "minimum"), (is_number, "not a number")),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), (is_exclusive_limit, "not valid in this version")),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains", "maxProperties"),
        (is_count, "not a whole number of 0 or more"),
    ),
    "minProperties": (is_count, "not a whole number of 0 or more"),
    **dict.fromkeys(("uniqueItems", "$recursiveAnchor"), (is_flag, "neither true nor false")),
    **dict.fromkeys(
        ("pattern", "format", "title", "description", "$id", "$ref", "$dynamicRef", "$recursiveRef"),
        (is_text, "not a string"),
    ),
    **dict.fromkeys(("$anchor", "$dynamicAnchor", "$comment"), (is_text, "not a string")),
    "enum": (is_list, "not a list"),
    "const": (is_anything, ""),
    "required": (is_names, "not a list of strings"),
    "dependentRequired": (is_map_of_names, "not an object of lists of strings"),
    "dependencies": (is_dependencies, "not an object of schemas and lists of strings"),
    **dict.fromkeys(SCHEMA_KEYWORDS, (is_schema, "not a schema")),
    **dict.fromkeys(("additionalProperties", "additionalItems"), (is_schema_or_flag, "neither a schema nor a boolean")),
    "items": (is_items, "not a schema"),
    **dict.fromkeys(LIST_KEYWORDS, (is_schemas, "not a list of schemas with at least one")),
    **dict.fromkeys(MAP_KEYWORDS, (is_map_of_schemas, "not an object of schemas")),
}
