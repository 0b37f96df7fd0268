"""Security in the OpenAPI document: how callers authenticate, and the scope that each operation needs."""

from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute

from stint.http.scopes import ROUTE_SCOPES

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
    for route in (each for router in routers for each in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                operation = described["paths"][route.path_format][method.lower()]
                scope = ROUTE_SCOPES[f"{method} {route.path}"]
                if scope is None:
                    operation["security"] = []
                else:
                    operation["x-required-scope"] = scope
