"""How the bodies of all routes are read."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.types import Message

from stint.http.requests import StrictRequest, StrictRoute
from stint.http.routes.inspection import list_parts

ROUTES = [route for part in list_parts() for route in part.routes if isinstance(route, APIRoute) and route.body_field]


def lists_of(schema: Any, seen: set[int]) -> Iterator[dict[str, Any]]:
    """List the schemas of lists in a core schema."""
    if id(schema) in seen:
        return
    seen.add(id(schema))
    if isinstance(schema, dict) and schema.get("type") == "list":
        yield schema
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list | tuple) else ():
        yield from lists_of(part, seen)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_body_is_read_strictly_and_its_lists_up_to_the_first_fault(route: APIRoute) -> None:
    assert isinstance(route, StrictRoute)
    assert route.body_field
    adapter: TypeAdapter[Any] = TypeAdapter(route.body_field.field_info.annotation)
    adapter.rebuild()

    assert all(each.get("fail_fast") for each in lists_of(adapter.core_schema, set()))


def test_lists_are_found() -> None:
    assert len(list(lists_of(TypeAdapter(list[list[int]]).core_schema, set()))) == 2


async def test_a_body_is_not_kept_once_it_is_parsed() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": b'{"a": 1}', "more_body": False}

    request = StrictRequest({"type": "http", "headers": []}, receive)

    assert await request.body() == b"{"
    assert await request.json() == {"a": 1}
    assert await request.body() == b"{"
    assert request._body == b"{"
