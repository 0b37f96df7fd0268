"""Field types of the OpenAI wire objects.

These objects have more fields and values than this server supports. A documented field that is silently ignored would
mislead its caller, so it is declared with a marker that refuses its values by name, and says why. Markers accept null,
because clients send it for whatever is unset.
"""

from collections.abc import Callable, Mapping
from functools import partial
from operator import is_, not_
from typing import Annotated, Any, TypeVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from stint.dataclasses import dataclass, field
from stint.domain.validation import MISSING_FIELD

T = TypeVar("T")


# Functions of C, since each document is written with a dozen calls of each.
is_none: Callable[[object], bool] = partial(is_, None)
"""Return whether a value is None."""
is_unset: Callable[[object], bool] = not_
"""Return whether a value is 0, false or empty."""

Omitted = Annotated[T | None, Field(exclude_if=is_none)]
"""A field that is omitted if it has no value. Clients of Open Responses refuse null instead."""

Nothing = Annotated[None, Field(exclude=True)]
"""The type of a refused field. Null is accepted, and is not written back."""


@dataclass(frozen=True, slots=True)
class UnsupportedField:
    """Marks a documented field that this server does not support. Any value but null is an error that says why."""

    reason: str

    def check(self, value: object) -> object:
        if value is not None:
            raise refusal(self.reason)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


@dataclass(frozen=True, slots=True, eq=False)
class SupportedValues:
    """Marks a field that supports some of its documented values. Null is accepted, other values are an error.

    A supported value is read as null, its equivalent, unless it is `kept`.
    """

    values: tuple[object, ...]
    reason: str
    kept: bool = False

    def check(self, value: object) -> object:
        if value is not None and value not in self.values:
            raise refusal(self.reason)
        return value if self.kept else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))


@dataclass(frozen=True, slots=True, eq=False)
class KnownTypes:
    """Checks the `type` of an object before a union reads it.

    `refused` has the reasons for unsupported types. `flat` are the fields of a function that the Responses API has
    beside `type`, and Chat Completions below `function`.
    """

    noun: str
    known: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)
    flat: str = ""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            kind = value.get("type")
            self.check(kind)
            if self.flat and kind == "function" and "function" in value and "name" not in value:
                raise missing("name", f"Responses has {self.flat} beside type, not below {kind}")
        return value

    def check(self, kind: object) -> None:
        """Raise unless the object has a supported type."""
        if not isinstance(kind, str):
            raise invalid(f"The {self.noun} needs a type. Set it to one of: {', '.join(self.known)}.")
        if kind not in self.known:
            reason = self.refused.get(kind) or f"the supported types are {', '.join(self.known)}"
            raise refusal(f"The {self.noun} type {kind[:80]!r} is not supported: {reason}.")


@dataclass(frozen=True, slots=True)
class MaxEntries:
    """Refuses an object with more entries before they are validated. Each invalid one would be an error of its own."""

    entries: int

    def check(self, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > self.entries:
            raise invalid(f"At most {self.entries} entries are allowed, not {len(value):,}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


def refusal(message: str) -> PydanticCustomError:
    """Make the error for something that is documented but not supported here."""
    return PydanticCustomError("not_supported", "{message}", {"message": message})


def invalid(message: str) -> PydanticCustomError:
    """Make the error for something that is invalid for any server."""
    return PydanticCustomError("invalid_value", "{message}", {"message": message})


def missing(name: str, reason: str) -> PydanticCustomError:
    """Make the error for an object without a field, whose location is that of the object."""
    return PydanticCustomError(MISSING_FIELD, "{field} is missing; {reason}", {"field": name, "reason": reason})


Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=16),
    MaxEntries(16),
]
"""Metadata of an object: 16 keys of up to 64 characters, with values of up to 512."""

LONG_TEXT = 10_485_760
"""Maximum characters of one text, as in Open Responses."""
