"""Evaluation of IAM policies: identity policies of a role whose session has tags.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

VARIABLE = re.compile(r"\$\{([^}]*)\}")
SUPPORTED = {"Sid", "Effect", "Action", "Resource", "Condition"}


class UnsupportedPolicy(Exception):
    """A policy has an element that is not evaluated here."""


@dataclass(frozen=True)
class Request:
    """A request of AWS. `context` has the values of each condition key; a key that is not sent is absent."""

    action: str
    resource: str
    context: Mapping[str, Sequence[str]] = field(default_factory=dict)


def is_allowed(statements: Iterable[Mapping[str, Any]], request: Request, tags: Mapping[str, str]) -> bool:
    """Return whether a session with tags may send a request: a statement allows it, and none denies it."""
    context = {**request.context, **{f"aws:PrincipalTag/{name}": [value] for name, value in tags.items()}}
    effects = {each["Effect"] for each in statements if applies(each, request, context)}
    return "Allow" in effects and "Deny" not in effects


def applies(statement: Mapping[str, Any], request: Request, context: Mapping[str, Sequence[str]]) -> bool:
    if unknown := statement.keys() - SUPPORTED:
        raise UnsupportedPolicy(f"elements {sorted(unknown)}")
    return (
        any(matches(request.action.lower(), each.lower(), {}) for each in as_list(statement["Action"]))
        and any(matches(request.resource, each, context) for each in as_list(statement["Resource"]))
        and all(
            holds(operator, key, as_list(wanted), context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, wanted in keys.items()
        )
    )


def holds(operator: str, key: str, wanted: Sequence[str], context: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a condition holds. A key that is absent fulfils `ForAllValues` and negated operators."""
    values = context.get(key, ())
    qualifier, _, name = operator.rpartition(":")
    if name == "Null":
        return (not values) == (wanted == ["true"])
    if name not in OPERATORS:
        raise UnsupportedPolicy(f"operator {operator}")
    fulfilled = [OPERATORS[name](value, wanted, context) for value in values]
    match qualifier:
        case "ForAllValues":
            return all(fulfilled)
        case "ForAnyValue":
            return any(fulfilled)
        case "":
            return fulfilled[0] if len(fulfilled) == 1 else name.startswith("StringNot") and not fulfilled
    raise UnsupportedPolicy(f"qualifier {qualifier}")


def is_like(value: str, patterns: Sequence[str], context: Mapping[str, Sequence[str]]) -> bool:
    return any(matches(value, pattern, context) for pattern in patterns)


OPERATORS: Mapping[str, Callable[[str, Sequence[str], Mapping[str, Sequence[str]]], bool]] = {
    "StringLike": is_like,
    "StringNotLike": lambda value, patterns, context: not is_like(value, patterns, context),
    "StringEquals": lambda value, wanted, _: value in wanted,
}


def matches(text: str, pattern: str, context: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a text matches a pattern with `*`, `?` and variables. One without a value matches nothing."""
    parts = VARIABLE.split(pattern)
    expression = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            expression += re.escape(part).replace(r"\*", ".*").replace(r"\?", ".")
        elif len(found := context.get(part, ())) == 1:
            expression += re.escape(found[0])
        else:
            return False
    return re.fullmatch(expression, text, re.DOTALL) is not None


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
