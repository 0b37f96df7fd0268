"""The rules of all routes of the API, as the functions of the routes state them."""

from stint.http.requests import LazyRoute
from stint.http.routes.inspection import list_parts
from stint.http.scopes import RouteRule
from stint.october_2024.routes.parts import list_october_parts

ROUTES: list[tuple[str, str, RouteRule]] = [
    (method, route.path, route.rule)
    for part in (*list_parts(), *list_october_parts())
    for route in part.routes
    if isinstance(route, LazyRoute)
    for method in sorted(route.methods or ())
]
"""Each route's method, path and rule."""

RULES = {f"{method} {path}": rule for method, path, rule in ROUTES}
ROUTE_SCOPES = {route: rule.scope for route, rule in RULES.items()}
