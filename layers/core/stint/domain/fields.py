"""Kinds of fields that the OpenAI wire objects are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

T = TypeVar("T")


def is_none(value: object) -> bool:
    return value is None


def is_false(value: object) -> bool:
    return value is False


def is_empty(value: object) -> bool:
    return value == []


Omitted = Annotated[T | None, Field(exclude_if=is_none)]
"""A field that is left out where it has no value: clients of Open Responses refuse a null in its place."""

Nothing = Annotated[None, Field(exclude=True)]
"""The type of a field that is refused: null passes, and is not written back."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Marks a documented field that this server does not honour: any value but null is an error that says why."""

    reason: str

    def check(self, value: object) -> object:
        if value is not None:
            raise refusal(self.reason)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


@dataclass(frozen=True, slots=True, eq=False)
class Only:
    """Marks a field that is honoured for some of its documented values; null passes, any other one is an error.

    A value that passes is read as null, what it stands for, unless it is `kept`.
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
    """Checks the `type` of an object before a union reads it; `refused` says of other documented types why not."""

    noun: str
    known: tuple[str, ...]
    refused: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            self.check(value.get("type"))
        return value

    def check(self, kind: object) -> None:
        """Raise unless an object of this type can be read."""
        if not isinstance(kind, str):
            raise invalid(f"The {self.noun} needs a type, one of: {', '.join(self.known)}.")
        if kind not in self.known:
            reason = self.refused.get(kind) or f"the types known here are {', '.join(self.known)}"
            raise refusal(f"The {self.noun} type {kind[:80]!r} is not supported: {reason}.")


@dataclass(frozen=True, slots=True)
class AtMost:
    """Refuses an object of more entries before they are validated: each invalid one would be an error of its own."""

    entries: int

    def check(self, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > self.entries:
            raise invalid(f"At most {self.entries} entries are allowed here, not {len(value):,}")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.check, handler(source))


def refusal(message: str) -> PydanticCustomError:
    """Make the error of something that is documented, and not offered here."""
    return PydanticCustomError("not_supported", "{message}", {"message": message})


def invalid(message: str) -> PydanticCustomError:
    """Make the error of something that is wrong by any server's rules."""
    return PydanticCustomError("invalid_value", "{message}", {"message": message})


Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=16),
    AtMost(16),
]
"""What a caller notes with an object: 16 keys of up to 64 characters, values of up to 512."""

LONG_TEXT = 10_485_760
"""The most characters of one text, as Open Responses has it."""
