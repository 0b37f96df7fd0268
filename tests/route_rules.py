"""The routers of all APIs, and the rules of their routes, as the functions of the routes state them."""

from fastapi import APIRouter

from stint.http.requests import LazyRoute, LazyRouter
from stint.http.routes.inspection import list_parts
from stint.http.scopes import RouteRule
from stint.october_2024.routes.parts import list_october_parts
from stint.openai_agents.beta import BetaRouter
from stint.openai_agents.routes import agents, automations, sessions, unsupported, vaults

AGENTS_API = (sessions.router, vaults.router, automations.router, unsupported.router)
"""The routers of the function openai_agents. Paths of agents match theirs, so they come first."""

ROUTERS = (*AGENTS_API, *(part for part in list_parts() if part not in AGENTS_API), *list_october_parts())
"""The routers of the documented API, and those of APIs in folders of their own."""

SAVED_AGENTS = BetaRouter(agents.__name__, "/v1/agents")
"""The routes of agents of the Agents API, for requests with its header."""

SERVED: tuple[APIRouter | LazyRouter, ...] = (
    *AGENTS_API,
    SAVED_AGENTS,
    *ROUTERS[len(AGENTS_API) :],
)
"""The routers of one app that serves all APIs."""


def list_rules(*routers: APIRouter) -> list[tuple[str, str, RouteRule]]:
    """Return the method, the path and the rule of each route."""
    return [
        (method, route.path, route.rule)
        for part in routers
        for route in part.routes
        if isinstance(route, LazyRoute)
        for method in sorted(route.methods or ())
    ]


ROUTES = list_rules(*ROUTERS)
OF_SAVED_AGENTS = list_rules(agents.router)
"""The routes that need a header: two APIs have the paths of agents."""

RULES = {f"{method} {path}": rule for method, path, rule in ROUTES}
ROUTE_SCOPES = {route: rule.scope for route, rule in RULES.items()}
