"""Routes of the APIs of October 2024 that this server does not have."""

from fastapi import APIRouter, Request, Response

from stint.domain.errors import NotSupported
from stint.http.scopes import requires
from stint.october_2024.routes.dependencies import OctoberRoute

APIS = (
    "batch_inference",
    "datasets",
    "evaluate",
    "post_training",
    "reward_scoring",
    "synthetic_data_generation",
)

router = APIRouter(route_class=OctoberRoute)


@requires("use")
async def refuse_api(request: Request) -> Response:
    """Refuse a request of an API that this server does not have."""
    api = request.url.path.removeprefix(request.scope.get("root_path", "")).split("/")[1]
    raise NotSupported(f"The API {api} of October 2024 is not supported. docs/october-2024.md lists what is.")


for name in APIS:
    router.add_api_route(f"/{name}/{{method:path}}", refuse_api, methods=["GET", "POST"], include_in_schema=False)
