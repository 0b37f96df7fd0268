"""The functions that FastAPI calls for a request."""

from collections.abc import Callable, Iterator
from inspect import iscoroutinefunction
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from tests.route_rules import ROUTERS


def calls_of(dependant: Dependant) -> Iterator[Callable[..., Any] | None]:
    yield dependant.call
    for each in dependant.dependencies:
        yield from calls_of(each)


def test_no_request_needs_a_thread() -> None:
    """FastAPI runs ordinary functions in a thread, which takes longer than what these functions do."""
    parts = ROUTERS
    routes = [route for part in parts for route in part.routes if isinstance(route, APIRoute)]

    calls = {call for route in routes for call in calls_of(route.dependant)}

    assert len(calls) > 100
    assert [call for call in calls if not iscoroutinefunction(call)] == []
