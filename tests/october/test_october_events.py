"""The sample events of the function october name its routes, and every route has one."""

import json
from pathlib import Path
from typing import Any

import pytest
from infra.local.invoke import EVENTS

from stint.http.requests import LazyRoute
from stint.october_2024.routes.parts import list_october_parts

FILES = sorted((EVENTS / "october").glob("*.json"))
ROUTES = [
    route
    for part in list_october_parts()
    for route in part.routes
    if isinstance(route, LazyRoute) and "{" not in route.path
]


def read(file: Path) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(file.read_text())
    return event


def test_every_path_has_an_event() -> None:
    assert {read(file)["path"] for file in FILES} == {route.path for route in ROUTES}


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_an_event_is_a_request_of_a_route(file: Path) -> None:
    event = read(file)
    methods = {method for route in ROUTES if route.path == event["path"] for method in route.methods or ()}

    assert event["httpMethod"] in methods
    assert event["requestContext"]["path"] == f"/prod{event['path']}"
    assert event["resource"].split("{", maxsplit=1)[0] in event["path"] + "/"
