"""The routes of the OpenAPI document and of the translated template."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from infra.local.system import ANY, Mock, Route, System

from stint.http.requests import LazyRoute
from stint.october_2024.routes.parts import list_october_parts

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
UNKNOWN = "00000000-0000-4000-8000-000000000000"
OPEN = frozenset(
    {
        "/v1/health",
        "/health",
        "/.well-known/agent-card.json",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/v1/mcp",
        "/v1/mcp/.well-known/oauth-protected-resource",
    }
)
PAGES = frozenset({"/", "/console", "/console/{proxy+}"})
"""The paths of the console, which has no data. Its function is no part of the app that is attacked."""


class Target(NamedTuple):
    """A method of a path. `template` is the path with its variables."""

    method: str
    template: str

    @property
    def path(self) -> str:
        """The path with an unknown id in place of each variable."""
        parts = self.template.split("/")
        return "/".join(UNKNOWN if part.startswith("{") else part for part in parts)

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


@cache
def documented() -> tuple[Target, ...]:
    """Return the operations of the OpenAPI document."""
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return tuple(Target(method.upper(), path) for path, item in paths.items() for method in item)


@cache
def october() -> tuple[Target, ...]:
    """Return the operations of the API of October 2024, which has a document of its own."""
    routes = [route for part in list_october_parts() for route in part.routes if isinstance(route, LazyRoute)]
    return tuple(Target(method, route.path_format) for route in routes for method in sorted(route.methods or ()))


def deployed(system: System) -> Iterator[Target]:
    """Yield the routes of the API in the template. A route for any method is one for each."""
    for route in system.routes:
        if not isinstance(route.integration, Mock) and route.path not in PAGES:
            yield from methods_of(route)


def methods_of(route: Route) -> Iterator[Target]:
    yield from (Target(method, route.path) for method in (METHODS if route.method == ANY else (route.method,)))


def closed_targets(system: System) -> list[Target]:
    """Return all targets that need a credential."""
    return sorted(each for each in {*documented(), *october(), *deployed(system)} if each.path not in OPEN)
