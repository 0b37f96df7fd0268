"""Forms with which the server of a tool asks the user, in the middle of a call (MCP: elicitation).

A form comes from a foreign server, so it is limited and shown as data. Its schema is one level deep: texts, numbers,
booleans, and lists of texts. What the user fills in is checked here before it is stored, since the call goes on later.
"""

import json
from collections.abc import Mapping
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.json_text import make_storable, storable_text
from stint.domain.known_secrets import redact
from stint.domain.tools import AskedInput, ElicitedForm

MOST_FORMS, MOST_FIELDS = 8, 32
MOST_SCHEMA, MOST_STATE, MOST_INPUT = 16_000, 64_000, 64_000
"""Maximum characters of a form's schema, of the state of a call with its keys, and of what a user fills in, as JSON."""
LONGEST_QUESTION, LONGEST_NAME = 4_000, 128
KEPT = frozenset(
    {"type", "title", "description", "format", "enum", "enumNames", "oneOf", "anyOf", "items", "default"}
    | {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)
"""The keywords of a field that are shown and checked."""
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
}


class UnusableForm(Exception):
    """A form cannot be shown, or a state cannot be stored. The message says why."""


@dataclass(frozen=True, slots=True)
class AnsweredInput:
    """The answers to the forms of a call, by the server's keys, with the state that the server gets back."""

    responses: Mapping[str, Any]
    state: str | None = None


def read_form(params: Mapping[str, Any]) -> ElicitedForm:
    """Read the form of a server. Raises UnusableForm."""
    message, schema = params.get("message"), params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(message, str) or not isinstance(schema, dict) or not isinstance(fields, dict):
        raise UnusableForm("it has no message or no schema")
    if len(fields) > MOST_FIELDS or any(len(name) > LONGEST_NAME for name in fields):
        raise UnusableForm(f"it has more than {MOST_FIELDS} fields, or names of more than {LONGEST_NAME} characters")
    if not all(isinstance(field, dict) for field in fields.values()):
        raise UnusableForm("one of its fields is no object")
    kept = {name: {key: value for key, value in field.items() if key in KEPT} for name, field in fields.items()}
    required = schema.get("required")
    names = [name for name in required if name in fields] if isinstance(required, list) else []
    shown = make_storable({"type": "object", "properties": kept, "required": names})
    if len(json.dumps(shown)) > MOST_SCHEMA:
        raise UnusableForm(f"its schema has more than {MOST_SCHEMA:,} characters")
    return ElicitedForm(message=clean(message), requested_schema=shown)


def key_of_form(number: int) -> str:
    """Return the key of a form. The server's may be long, and contain a credential that it got."""
    return f"form_{number}"


def clean(message: str) -> str:
    """Return a text of a server without control characters and known credentials, and not too long."""
    printable = "".join(char if char.isprintable() or char == "\n" else " " for char in message[: 2 * LONGEST_QUESTION])
    said = redact(storable_text(printable)).strip()
    return said if len(said) <= LONGEST_QUESTION else f"{said[:LONGEST_QUESTION]}..."


def answer_forms(forms: Mapping[str, ElicitedForm], given: Mapping[str, Any] | None, *, accept: bool) -> dict[str, Any]:
    """Return the answers to forms, by their keys. With several forms, `given` has what is filled in by these keys.

    Raises InvalidRequest if the input does not fit a form.
    """
    if not accept:
        return {key: {"action": "decline"} for key in forms}
    if len(json.dumps(given)) > MOST_INPUT:
        raise refuse_input(f"it has more than {MOST_INPUT:,} characters")
    given = given or {}
    if unknown := [key for key in given if key not in forms] if len(forms) > 1 else []:
        raise refuse_input(f"there is no form {unknown[0][:LONGEST_NAME]!r}; the forms are: {', '.join(forms)}")
    return {
        key: {"action": "accept", "content": check_fields(form, given.get(key, {}) if len(forms) > 1 else given)}
        for key, form in forms.items()
    }


def continue_call(asked: AskedInput, given: Mapping[str, Any] | None, *, accept: bool) -> AnsweredInput:
    """Return the answers that a server gets. Raises InvalidRequest as `answer_forms`."""
    responses = answer_forms(asked.forms, given, accept=accept)
    named = {asked.server_keys.get(key, key): response for key, response in responses.items()}
    return AnsweredInput(named, asked.state)


def check_fields(form: ElicitedForm, given: Any) -> dict[str, Any]:
    """Return what is filled into a form. Raises InvalidRequest."""
    fields = form.requested_schema["properties"]
    if not isinstance(given, dict):
        raise refuse_input("what is filled into a form must be an object")
    for name in form.requested_schema["required"]:
        if name not in given:
            raise refuse_input(f"the field {name!r} is missing")
    for name, value in given.items():
        if name not in fields:
            raise refuse_input(
                f"there is no field {name[:LONGEST_NAME]!r}; the fields are: {', '.join(fields) or 'none'}"
            )
        if (problem := problem_of(fields[name], value)) is not None:
            raise refuse_input(f"the field {name!r} {problem}")
    return given


def problem_of(field: Mapping[str, Any], value: Any) -> str | None:
    """Return what is wrong with a value; None if nothing is."""
    kind = field.get("type")
    expected = TYPES.get(kind) if isinstance(kind, str) else None
    if expected is not None and (not isinstance(value, expected) or isinstance(value, bool) != (kind == "boolean")):
        return f"must be of the type {kind}"
    if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(each, str) for each in value)):
        return "must be a text, a number, a boolean, or a list of texts"
    items = field.get("items")
    choices = choices_of(items if isinstance(value, list) and isinstance(items, dict) else field)
    if choices and any(each not in choices for each in (value if isinstance(value, list) else [value])):
        return f"must be one of: {', '.join(map(str, choices))[:500]}"
    return problem_of_size(field, value)


def problem_of_size(field: Mapping[str, Any], value: Any) -> str | None:
    """Return what is wrong with the length of a text or a list, or with a number; None if nothing is."""
    size, suffix = value, "imum"
    if isinstance(value, str | list):
        size, suffix = len(value), "Length" if isinstance(value, str) else "Items"
    least, most = field.get(f"min{suffix}"), field.get(f"max{suffix}")
    if is_number(size) and ((is_number(least) and size < least) or (is_number(most) and size > most)):
        return f"must be from {least if is_number(least) else 'any'} to {most if is_number(most) else 'any'}"
    return None


def choices_of(field: Mapping[str, Any]) -> list[Any]:
    """Return the values that a field may have; none if it is not a choice."""
    if isinstance(enum := field.get("enum"), list):
        return enum
    named = field.get("oneOf") or field.get("anyOf")
    objects = [each for each in named if isinstance(each, dict)] if isinstance(named, list) else []
    return [each["const"] for each in objects if "const" in each]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def refuse_input(problem: str) -> InvalidRequest:
    return InvalidRequest(
        f"The input of an approval does not fit the form of the tool's server: {problem}. The turn's pending_inputs "
        "has the forms. Correct the input, or send approve false to decline.",
        code="input_mismatch",
        param="approvals",
    )


def describe(asked: AskedInput) -> str:
    """Return all texts of forms, for the shields that check what a tool says."""
    return "\n".join(f"{each.message}\n{json.dumps(each.requested_schema)}" for each in asked.forms.values())
