"""A json_schema response format in the form that providers need: a schema with a name.

Clients send two forms, and a schema may look like the wrapper of another one:

    has `schema`, an object, and no `type`     OpenAI's wrapper: name, schema, strict, description
    anything else                              Llama Stack's bare schema, whose name is its title

`strict` makes a provider constrain its output, and it refuses a strict schema that it cannot enforce. So a schema whose
client did not say is strict exactly if OpenAI's rules allow it.

A walk through a schema must not take data for schemas: values under LITERALS are data, and the keys under NAMED are
names of the caller's, not keywords. A property may be named `enum`.
"""

import re
from collections.abc import Iterator
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AnswerFormat, GrammarResponseFormat, JsonObjectResponseFormat

LITERALS = frozenset({"enum", "const", "default", "examples", "required"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class NamedSchema:
    """A JSON schema. `strict` requires an answer that satisfies it; `description` says what it is for."""

    name: str
    schema: dict[str, Any]
    strict: bool
    description: str = ""


def read_schema(response_format: AnswerFormat) -> NamedSchema:
    """Read either form of clients: Llama Stack's bare schema, or OpenAI's `{name, schema, ..}`.

    A json_object is a schema that any object satisfies. A bare schema is strict if OpenAI accepts it as strict, because
    a provider refuses strict with any other.

    Raises:
        InvalidRequest: the format is a grammar.
    """
    if isinstance(response_format, GrammarResponseFormat):
        raise InvalidRequest(
            "A response_format of type grammar is not supported by this model's provider. Use a json_schema",
            param="response_format",
        )
    if isinstance(response_format, JsonObjectResponseFormat):
        return NamedSchema(_name(None), ANY_OBJECT, strict=False)
    given = response_format.json_schema
    wrapped = given.get("schema")
    if isinstance(wrapped, dict) and "type" not in given:
        strict = given.get("strict")
        strict = is_strict(wrapped) if strict is None else bool(strict)
        return NamedSchema(_name(given.get("name")), wrapped, strict, str(given.get("description") or ""))
    return NamedSchema(_name(given.get("title")), given, is_strict(given))


def is_strict(schema: dict[str, Any]) -> bool:
    """Return whether every object of a schema requires all its properties and allows no others.

    See "Structured outputs, supported schemas" in OpenAI's documentation.
    """
    if "properties" in schema or schema.get("type") == "object":
        required = schema.get("required")
        names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        if schema.get("additionalProperties") is not False or not names.issuperset(_properties(schema)):
            return False
    return all(is_strict(part) for part in _parts(schema))


def close_objects(schema: dict[str, Any]) -> dict[str, Any]:
    """Forbid further properties wherever a schema lists properties and does not mention others.

    A value of the closed schema also satisfies the open one. Bedrock accepts only closed objects ("Get validated JSON
    results from models", Amazon Bedrock User Guide).
    """
    closed = {key: _close(key, value) for key, value in schema.items()}
    if _properties(schema):
        closed.setdefault("additionalProperties", False)
    return closed


def _close(key: str, value: Any) -> Any:
    if key in LITERALS:
        return value
    if isinstance(value, list):
        return [close_objects(part) if isinstance(part, dict) else part for part in value]
    if not isinstance(value, dict):
        return value
    if key in NAMED:
        return {name: close_objects(part) if isinstance(part, dict) else part for name, part in value.items()}
    return close_objects(value)


def _parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the direct subschemas of a schema."""
    for key, value in schema.items():
        if key in LITERALS:
            continue
        if key in NAMED and isinstance(value, dict):
            values = list(value.values())
        else:
            values = value if isinstance(value, list) else [value]
        yield from (part for part in values if isinstance(part, dict))


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _name(title: Any) -> str:
    """Return a name of at most 64 letters, digits, underscores and hyphens."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", title)[:64] if isinstance(title, str) else ""
    return name.strip("_") or "response"
