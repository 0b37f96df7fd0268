"""The routers of all APIs, and the rules of their routes, as the functions of the routes state them."""

from stint.http.requests import LazyRoute
from stint.http.routes.inspection import list_parts
from stint.http.scopes import RouteRule
from stint.october_2024.routes.parts import list_october_parts
from stint.openai_agents.routes import sessions, unsupported, vaults

ROUTERS = (sessions.router, unsupported.router, vaults.router, *list_parts(), *list_october_parts())
"""The routers of the documented API, and those of APIs in folders of their own."""

ROUTES: list[tuple[str, str, RouteRule]] = [
    (method, route.path, route.rule)
    for part in ROUTERS
    for route in part.routes
    if isinstance(route, LazyRoute)
    for method in sorted(route.methods or ())
]
"""Each route's method, path and rule."""

RULES = {f"{method} {path}": rule for method, path, rule in ROUTES}
ROUTE_SCOPES = {route: rule.scope for route, rule in RULES.items()}
