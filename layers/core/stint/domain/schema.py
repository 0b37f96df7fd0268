"""The base classes of wire objects, whose validators pydantic builds when they are first used, and once.

A class is built before the classes that contain it (`Schema.__get_pydantic_core_schema__`), so that these use its
validator. Otherwise pydantic builds it again in each of them, which was most of the CPU time of a first request.
`_building` finds a class that contains itself. One lock serves all threads, because pydantic removes what another
thread has built meanwhile.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache, lru_cache
from threading import RLock
from types import NoneType
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, PlainSerializer, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

from stint.dataclasses import dataclass

MOST_FIELDS = 1_000
"""Maximum fields of an object from a caller, including unknown ones. No object has a tenth of them."""


_lock = RLock()
_building: ContextVar[frozenset[type]] = ContextVar("building", default=frozenset())
"""The classes that this thread is building. Each but one is within another."""


class Schema(BaseModel):
    """A wire object: the API shape, the object in memory and the stored document at once.

    Unknown fields are ignored. Validators are built on first use, so that they cost no cold start, and once, however
    many objects contain theirs. A list is validated up to its first invalid entry, because pydantic's errors for
    200,000 entries take 600 MB. Errors contain no values, which could reach a log.
    """

    model_config = ConfigDict(extra="ignore", defer_build=True, protected_namespaces=(), hide_input_in_errors=True)
    input_fields: ClassVar[frozenset[str]] = frozenset()
    """Names of fields that a request may have, and that the object read from it lacks."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # An object within another is built first. Otherwise each object that contains it would build it again.
        if not cls.__pydantic_complete__ and cls not in _building.get():
            cls.model_rebuild()
        schema = handler(source)
        if cls in _building.get():
            fail_fast(schema, cls)
        return schema

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        """Build the validator and the serializer, which their first use does."""
        building = _building.set(_building.get() | {cls})
        try:
            with _lock:  # pydantic removes what another thread has built meanwhile
                return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **options)
        finally:
            _building.reset(building)

    def without_images(self) -> "Schema | None":
        """Return a document as models get it; None if it has no large generated image."""
        return None

    def to_json(self, *, exclude_none: bool = False) -> bytes:
        """Return compact JSON in UTF-8. A text would take up to four bytes per character."""
        return self.__pydantic_serializer__.to_json(self, exclude_none=exclude_none)


def fail_fast(schema: Any, owner: type[Schema]) -> None:
    """Make the lists of a class's core schema stop at their first invalid entry. Those of other classes do already."""
    if isinstance(schema, dict):
        kind = schema.get("type")
        if kind == "model" and schema["cls"] is not owner and issubclass(schema["cls"], Schema):
            return
        if kind == "list":
            schema["fail_fast"] = True
        for part in schema.values():
            fail_fast(part, owner)
    elif isinstance(schema, list | tuple):
        for part in schema:
            fail_fast(part, owner)


@cache
def fields_without_null(schema: type[Schema]) -> frozenset[str]:
    """Return the names of the fields that have a default and do not accept null."""
    return frozenset(
        name
        for name, field in schema.model_fields.items()
        if not field.is_required() and NoneType not in get_args(field.annotation)
    )


class Request(Schema):
    """A wire object from a caller. Null means the default where null itself has no meaning."""

    @model_validator(mode="before")
    @classmethod
    def drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if len(data) > MOST_FIELDS:
            raise PydanticCustomError("too_long", "The object has more than 1,000 fields. Remove the unknown ones")
        return {key: value for key, value in data.items() if value is not None or key not in fields_without_null(cls)}


@dataclass(frozen=True, slots=True)
class KnownFields:
    """The names of the fields of a class in a request, and those of its fields that contain objects, by these names."""

    names: frozenset[str]
    objects: Mapping[str, str]


@cache
def known_fields(kind: type) -> KnownFields | None:
    """Return the fields of a class; None if it is not that of an object."""
    if not issubclass(kind, Schema):
        return None
    names: set[str] = set(kind.input_fields)
    objects: dict[str, str] = {}
    for attribute, field in kind.model_fields.items():
        alias = field.validation_alias
        given = {*getattr(alias, "choices", (alias,))} if alias else {attribute}
        given |= {attribute} if kind.model_config.get("validate_by_name") else set()
        names |= given
        if contains_objects(field.annotation):
            objects |= dict.fromkeys(given, attribute)
    return KnownFields(frozenset(names), objects)


def contains_objects(annotation: object) -> bool:
    """Return whether values of a type are, or contain, objects with known fields."""
    if isinstance(annotation, type) and not get_args(annotation):
        return issubclass(annotation, Schema)
    return any(map(contains_objects, get_args(annotation)))


def has_unknown_fields(given: Any, read: Any) -> bool:
    """Return whether a value of a request has fields that its objects lack. `read` is what was read from it.

    Each request waits for this: it calls no function of Python except for the first object of a class.
    """
    pending = [(given, read)]
    while pending:
        given, read = pending.pop()
        if isinstance(given, dict):
            if isinstance(read, dict):
                pending += [(given[name], value) for name, value in read.items() if name in given]
            elif (known := known_fields(read.__class__)) is not None:
                if not known.names.issuperset(given):
                    return True
                for name, attribute in known.objects.items():
                    if name in given:
                        pending.append((given[name], read.__dict__[attribute]))
        elif isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
            pending += zip(given, read, strict=True)
    return False


@lru_cache(maxsize=64)  # most times are written more than once: in an event, in the document of its turn, and stored
def format_timestamp(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC, always with microseconds, as Llama Stack does."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


Timestamp = Annotated[datetime, PlainSerializer(format_timestamp, return_type=str, when_used="json")]


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)
