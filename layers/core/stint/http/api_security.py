"""Security in the OpenAPI document: how callers authenticate, and the scope that each operation needs."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter

from stint.http.requests import LazyRoute, scoped_routes

SCHEMES = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key (`stk_...`) or a token of the configured OIDC issuer.",
    }
}


def add_security(described: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add the security scheme to a document, and to each operation the scope that it needs."""
    described["components"]["securitySchemes"] = SCHEMES
    described["security"] = [{"bearer": []}]
    for route in (each for router in routers for each in scoped_routes(router)):
        if isinstance(route, LazyRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = described["paths"][route.path_format][method.lower()]
                if route.rule.scope is None:
                    operation["security"] = []
                else:
                    operation["x-required-scope"] = route.rule.scope
