"""The routers of the API of October 2024, and their list."""

from fastapi import APIRouter, Response

from stint.http.requests import LazyRoute
from stint.http.scopes import requires
from stint.october_2024.registry import by_api
from stint.october_2024.routes import agents, inference, memory, registry, unsupported
from stint.october_2024.routes.dependencies import OctoberRoute, OctoberServicesDep
from stint.october_2024.schemas.registry import RouteInfo, RoutesByAPI

router = APIRouter(tags=["October 2024"], route_class=OctoberRoute)
INSPECTION = frozenset({"health", "providers", "routes"})


def list_october_parts() -> tuple[APIRouter, ...]:
    """Return the routers of the API of October 2024."""
    return (
        agents.router,
        inference.router,
        memory.router,
        registry.router,
        unsupported.router,
        router,
    )


@router.get("/routes/list", response_model=RoutesByAPI)
@requires("use")
async def list_october_routes(services: OctoberServicesDep) -> Response:
    """List the routes of this API by the APIs of October 2024, with the types of the providers."""
    types = {
        api: sorted({each.provider_type for each in providers})
        for api, providers in by_api(services.registry.providers.data).items()
    }
    grouped: dict[str, list[RouteInfo]] = {}
    supported = (part for part in list_october_parts() if part is not unsupported.router)
    routes = [route for part in supported for route in part.routes if isinstance(route, LazyRoute)]
    for route in routes:
        first = route.path.split("/")[1]
        api = "inspect" if first in INSPECTION else first
        for method in sorted(route.methods or ()):
            entry = RouteInfo(route=route.path, method=method.lower(), provider_types=types.get(api, []))
            grouped.setdefault(api, []).append(entry)
    return Response(RoutesByAPI(grouped).model_dump_json(), media_type="application/json")
