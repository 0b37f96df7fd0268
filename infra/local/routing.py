"""Route selection of an API Gateway REST API."""

from collections.abc import Iterable
from dataclasses import dataclass

from infra.local.system import ANY, Route


@dataclass(frozen=True)
class Match:
    """A route with the values of its path variables, as the client sent them (percent-encoded)."""

    route: Route
    path_parameters: dict[str, str]


class Router:
    """Router with API Gateway's precedence: static segments before variables, variables before {proxy+}.

    The path selects the resource. If it has neither the method nor ANY, no other resource is tried.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-method-settings-method-request.html
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._resources: dict[str, dict[str, Route]] = {}
        for route in routes:
            self._resources.setdefault(route.path, {})[route.method] = route
        self._paths = sorted(self._resources, key=precedence)

    def match(self, method: str, path: str) -> Match | None:
        """Return the route for a method and a raw path, and ignore a trailing slash."""
        segments = path.strip("/").split("/")
        for resource in self._paths:
            variables = bind(resource, segments)
            if variables is not None:
                methods = self._resources[resource]
                route = methods.get(method) or methods.get(ANY)
                return Match(route, variables) if route else None
        return None


def precedence(resource: str) -> tuple[int, ...]:
    """Return the sort key of a resource path; more specific paths come first."""
    return tuple(kind(segment) for segment in resource.strip("/").split("/"))


def kind(segment: str) -> int:
    """Return 0 for a static segment, 1 for a variable, 2 for a greedy variable."""
    if not segment.startswith("{"):
        return 0
    return 2 if segment.endswith("+}") else 1


def bind(resource: str, segments: list[str]) -> dict[str, str] | None:
    """Return the values of the resource's variables, or None if the path does not match."""
    pattern = resource.strip("/").split("/")
    variables = {}
    for index, part in enumerate(pattern):
        if index >= len(segments) or (kind(part) and not segments[index]):
            return None
        if kind(part) == 2:
            variables[part[1:-2]] = "/".join(segments[index:])
            return variables
        if kind(part) == 1:
            variables[part[1:-1]] = segments[index]
        elif part != segments[index]:
            return None
    return variables if len(pattern) == len(segments) else None
