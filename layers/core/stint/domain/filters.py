"""Filters of attributes, as OpenAI's vector stores define them.

The limits of a filter are checked before pydantic reads it, so that a deep or a large one is refused by one message
instead of one error for each of its comparisons.

An attribute has a type, and a comparison with one value of another type is false: `true` is no number, although it is
one in Python, and a text is never greater than a number. An attribute that is missing makes every comparison false,
also `ne` and `nin`.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeGuard

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from stint.domain.fields import MaxEntries, invalid
from stint.domain.schema import Request

MAX_DEPTH, MAX_CONDITIONS, MAX_VALUES = 5, 100, 100
"""Maximum nesting of a filter, comparisons in it, and values of `in`. S3 Vectors accepts 100 constraints."""

Value = StrictStr | StrictBool | StrictInt | StrictFloat
Attributes = dict[str, str | bool | int | float]
MAX_ATTRIBUTES, MAX_KEY_LENGTH, MAX_TEXT_LENGTH = 16, 64, 512
"""Maximum attributes of a file, characters of a key, and characters of a text (OpenAI)."""
Text = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
NewAttributes = Annotated[
    dict[
        Annotated[str, Field(max_length=MAX_KEY_LENGTH)],
        Annotated[Text, Field(strict=True)] | StrictBool | StrictInt | StrictFloat,
    ],
    Field(max_length=MAX_ATTRIBUTES),
    MaxEntries(MAX_ATTRIBUTES),
]
"""Attributes of a request: 16 keys of up to 64 characters; texts have up to 512."""


def attributes_of(metadata: Mapping[str, object]) -> Attributes:
    """Return the values of metadata that attributes may have: the first 16 that are short enough, and not nested."""
    found = {key: value for key, value in metadata.items() if len(key) <= MAX_KEY_LENGTH and is_value(value)}
    return dict(list(found.items())[:MAX_ATTRIBUTES])


def is_value(value: object) -> TypeGuard[str | bool | int | float]:
    """Return whether an attribute may have a value."""
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH)


def check_size(value: Any) -> Any:
    """Refuse a filter that is nested too deep or has too many comparisons, before it is validated."""
    level, conditions = [value], 0
    # Level by level instead of recursively: the input may be nested deeper than Python can call.
    for _ in range(MAX_DEPTH):
        lists = [each["filters"] for each in level if isinstance(each, dict) and isinstance(each.get("filters"), list)]
        conditions += len(level)
        level = [each for found in lists for each in found]
        if conditions + len(level) > MAX_CONDITIONS:
            raise invalid(f"A filter may have {MAX_CONDITIONS} comparisons. Use fewer.")
        if not level:
            return value
    raise invalid(f"A filter may be nested {MAX_DEPTH} levels deep. Use fewer levels.")


class ComparisonFilter(Request):
    """A comparison of one attribute. It is false if there is no such attribute, or if the types differ."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, Field(max_length=64)]
    value: Value | Annotated[list[Value], Field(max_length=MAX_VALUES)]

    @model_validator(mode="after")
    def check_value(self) -> Self:
        if isinstance(self.value, list) is not (self.type in ("in", "nin")):
            raise invalid(
                f"The comparison {self.type} needs {'a list' if self.type in ('in', 'nin') else 'one value'}."
            )
        return self

    def matches(self, attributes: Mapping[str, Any]) -> bool:
        found = attributes.get(self.key)
        if found is None:
            return False
        if isinstance(self.value, list):
            inside = any(same_type(found, each) and found == each for each in self.value)
            return inside is (self.type == "in")
        return same_type(found, self.value) and COMPARE[self.type](found, self.value)


class CompoundFilter(Request):
    """Several filters, of which all or one must match."""

    type: Literal["and", "or"]
    filters: list["Filter"]

    def matches(self, attributes: Mapping[str, Any]) -> bool:
        each = (condition.matches(attributes) for condition in self.filters)
        return all(each) if self.type == "and" else any(each)


def form_of_filter(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "compound" if kind in ("and", "or") else "comparison"


Filter = Annotated[
    Annotated[ComparisonFilter, Tag("comparison")] | Annotated[CompoundFilter, Tag("compound")],
    Discriminator(form_of_filter),
]
NewFilter = Annotated[Filter, BeforeValidator(check_size)]
"""A filter of a request, within its limits."""

COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


def same_type(one: object, other: object) -> bool:
    """Return whether two values can be compared: both texts, both truth values, or both numbers."""
    return kind_of(one) == kind_of(other)


def kind_of(value: object) -> str:
    # First, because a bool is an int in Python.
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "text"


def searchable(document_id: str, metadata: Mapping[str, object]) -> Attributes:
    """Return the attributes of a document that was inserted with metadata. Filters compare them."""
    own = {"document_id": document_id}
    return attributes_of(own | dict(metadata) | own)
