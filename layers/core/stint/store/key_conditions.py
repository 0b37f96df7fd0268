"""Conditions of sort keys in a Query."""

from stint.store.items import Item

CONDITIONS = {
    "begins_with(sk, :prefix)": {":prefix"},
    "sk BETWEEN :since AND :before": {":since", ":before"},
    "sk < :before": {":before"},
    "sk >= :since": {":since"},
}
"""The conditions, and the values that each needs. DynamoDB accepts one condition of a sort key."""


def sk_condition(*, prefix: str | None, before: str | None, since: str | None) -> tuple[str, Item]:
    """Return the condition for the given bounds, or an empty text, and its values.

    With `since`, no record may have the key `before`, which BETWEEN includes.
    """
    bounds = {":prefix": prefix, ":before": before, ":since": since}
    values = {name: value for name, value in bounds.items() if value is not None}
    condition = next((text for text, names in CONDITIONS.items() if names <= values.keys()), "")
    return condition, {name: values[name] for name in CONDITIONS.get(condition, ())}
