"""The routers of the API of October 2024, and their list."""

from fastapi import APIRouter, Response

from stint.domain.llama_stack.october_2024_registry import RouteInfo, RoutesByAPI
from stint.http.october_dependencies import OctoberRoute
from stint.http.requests import LazyRoute
from stint.http.routes import (
    october_2024,
    october_2024_inference,
    october_2024_memory,
    october_2024_registry,
    october_2024_unsupported,
)

router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)


def list_october_parts() -> tuple[APIRouter, ...]:
    """Return the routers of the API of October 2024."""
    return (
        october_2024.router,
        october_2024_inference.router,
        october_2024_memory.router,
        october_2024_registry.router,
        october_2024_unsupported.router,
        router,
    )


@router.get("/routes/list", response_model=RoutesByAPI)
async def list_october_routes() -> Response:
    """List the routes of this API by the first part of their paths."""
    grouped: dict[str, list[RouteInfo]] = {}
    supported = (part for part in list_october_parts() if part is not october_2024_unsupported.router)
    routes = [route for part in supported for route in part.routes if isinstance(route, LazyRoute)]
    for route in routes:
        for method in sorted(route.methods or ()):
            entry = RouteInfo(route=route.path, method=method)
            grouped.setdefault(route.path.split("/")[1], []).append(entry)
    return Response(RoutesByAPI(grouped).model_dump_json(), media_type="application/json")
