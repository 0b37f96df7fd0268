"""Every operation with a JSON body, with deeply nested JSON in place of each of its values: none fails for it."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.isolation.belongings import Ids
from tests.api.isolation.operations import RequestTemplate
from tests.api.isolation.tenants import Tenant, list_templates, make_tenant
from tests.api.isolation.warm_process import WarmProcess

BRACKETS = "[" * 1_000
"""JSON in a text, which recursive parsers cannot read."""

LEVELS = 90
"""Levels of a value that a body may have."""

MOST_PLACES = 6
"""Places of one body: others have the same types."""


@pytest.fixture(scope="module")
def tenant(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "dora", mcp_server)


def nested(levels: int) -> Any:
    value: Any = {"a": 1}
    for _ in range(levels):
        value = [value]
    return value


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value inside a body."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield (*path, key)
        yield from places_in(child, (*path, key))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a body with another value at a path."""
    if not path:
        return other
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {name: put(child, rest, other) if name == key else child for name, child in value.items()}
    return [put(child, rest, other) if place == key else child for place, child in enumerate(value)]


def statuses(template: RequestTemplate, tenant: Tenant) -> Iterator[tuple[Any, Any, int]]:
    """Send a request with a deep value at each place of its body, and yield the statuses."""
    arguments = template.arguments(Ids(tenant.ids_for(template, {})))
    body = arguments.pop("json")
    for path in [*places_in(body)][:MOST_PLACES]:
        for other in (BRACKETS, nested(LEVELS - len(path))):
            answer = tenant.http.request(template.operation.method, **arguments, json=put(body, path, other))
            yield path, type(other).__name__, answer.status_code


def test_no_operation_fails_for_deep_values(tenant: Tenant) -> None:
    templates = [each for each in list_templates("POST", "PUT", "PATCH") if each.body is not None]

    failed = [
        f"{template.label}: {status} for a {kind} at {path}"
        for template in templates
        for path, kind, status in statuses(template, tenant)
        if status >= 500
    ]

    assert not failed
