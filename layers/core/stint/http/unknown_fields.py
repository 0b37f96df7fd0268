"""Unknown fields of request bodies, which are ignored: the caller is told in a header of the response.

They are those of JSON and of forms. Unknown parameters of a query are always ignored, and named in the header.

OpenAI's servers refuse an unknown field, and Llama Stack's ignore it. Clients of OpenAI also send what only other
servers know, such as `top_k`, and newer clients what is new. So here

    the field                        OpenAI's API                  Llama Stack's APIs
    misspells a known one            400 `unknown_parameter`       the header names it, and the known one
    misspells one that is given,     the header names both         the header names both
    too, as `models` beside `model`
    is another one                   the header names it           the header names it
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Set
from itertools import islice
from typing import Any
from urllib.parse import parse_qsl

from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute
from starlette.types import Scope

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, shorten
from stint.domain.misspellings import LONGEST_NAME, find_intended
from stint.domain.schema import known_fields
from stint.http.warning_header import add_warnings

MOST_FIELDS = 20
"""Maximum unknown fields of a request that are compared with the known ones."""

MOST_OBJECTS = 10_000
"""Maximum objects of a request in which unknown fields are looked for."""

FILTER = "metadata["
"""The beginning of the parameters of a filter (`http/metadata_filters.py`)."""

OPENAI = ("stint.domain.openai.", "stint.openai_agents.")
"""The beginnings of the modules with the objects of OpenAI's APIs."""


@dataclass(frozen=True, slots=True)
class UnknownField:
    """An unknown field by its path in the body, and the known one that it misspells, which may be given, too."""

    path: str
    intended: str | None
    is_intended_given: bool

    def describe(self, kind: str = "field") -> str:
        advice = f" Did you mean {self.intended!r}?" if self.intended else ""
        return f"Unknown {kind} {self.path!r} is ignored.{advice}"


def note_unknown_fields(given: object, read: object, scope: Scope) -> None:
    """Name the unknown fields of a body in a header of the response. `read` is what was read from the body.

    Raises InvalidRequest for a misspelled field of OpenAI's API.
    """
    fields = list(find_unknown_fields(given, read))
    if type(read).__module__.startswith(OPENAI):
        refuse_misspelled(fields)
    add_warnings(scope, [field.describe() for field in fields])


def note_unknown_parts(given: Collection[str], known: Set[str], scope: Scope) -> None:
    """Name the unknown parts of a form in a header of the response. Raises InvalidRequest for a misspelled one."""
    fields = compare_names(given, known)
    refuse_misspelled(fields)
    add_warnings(scope, [field.describe() for field in fields])


def note_unknown_parameters(route: APIRoute, scope: Scope) -> None:
    """Name the unknown parameters of a query in a header of the response."""
    # The script of a page may read a query, and routes that describe one read and check the whole of it themselves.
    described = (route.openapi_extra or {}).get("parameters", [])
    objects = tuple(f"{each['name']}[" for each in described if each.get("style") == "deepObject")
    if not route.include_in_schema or len(objects) < len(described):
        return
    known = {field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, Query)}
    query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    # Functions of routes read objects such as `toolgroup_id[name]` from the query by themselves.
    plain = (name for name, _ in query if "[" not in name or name.startswith(FILTER))
    # A filter has a dependency that checks it. Where there is none, it would be taken for one that took effect.
    fields = compare_names([name for name in dict.fromkeys(plain) if not name.startswith(objects)], known)
    add_warnings(scope, [field.describe("query parameter") for field in fields])


def compare_names(given: Collection[str], known: Set[str]) -> list[UnknownField]:
    """Return the names that are unknown, up to MOST_FIELDS."""
    unknown = islice((name for name in given if name not in known), MOST_FIELDS)
    found = ((name, find_intended(name, known)) for name in unknown)
    return [UnknownField(join("", name), intended, intended in given) for name, intended in found]


def refuse_misspelled(fields: Iterable[UnknownField]) -> None:
    """Raise InvalidRequest for a field that misspells a known one, which is not given."""
    for field in fields:
        if field.intended is not None and not field.is_intended_given:
            message = f"Unknown parameter: {field.path!r}. Did you mean {field.intended!r}?"
            raise InvalidRequest(message, code="unknown_parameter", param=field.path)


def find_unknown_fields(given: object, read: object) -> Iterator[UnknownField]:
    """Yield the unknown fields of a body, the outermost first, each once per class: up to MOST_FIELDS."""
    seen: set[tuple[type, str]] = set()
    for path, fields, kind in list_objects(given, read):
        known = known_fields(kind)
        if known is None or known.names.issuperset(fields):
            continue
        for name in fields:
            if name in known.names or (kind, name) in seen:
                continue
            seen.add((kind, name))
            intended = find_intended(name, known.names)
            yield UnknownField(join(path, name), intended, intended in fields)
            if len(seen) == MOST_FIELDS:
                return


def list_objects(given: Any, read: Any) -> Iterator[tuple[str, dict[str, object], type]]:
    """Yield the objects of a body with their paths and classes, the outermost first: up to MOST_OBJECTS."""
    pending: deque[tuple[str, Any, Any]] = deque([("", given, read)])
    for _ in range(MOST_OBJECTS):
        if not pending:
            return
        path, given, read = pending.popleft()
        if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
            parts = zip(given, read, strict=True)
            pending += ((f"{path}[{place}]", *each) for place, each in enumerate(islice(parts, MOST_OBJECTS)))
        elif isinstance(given, dict):
            known = known_fields(read.__class__)
            names = known.objects if known else {name: name for name in read} if isinstance(read, dict) else {}
            values = read if isinstance(read, dict) else vars(read) if known else {}
            pending += ((join(path, name), given[name], values[own]) for name, own in names.items() if name in given)
            yield path, given, type(read)


def join(path: str, name: str) -> str:
    """Return the path of a field in an object. A name from the caller may be long."""
    return f"{path}.{shorten(name, LONGEST_NAME)}".removeprefix(".")
