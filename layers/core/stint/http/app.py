"""The factory of all functions' web apps."""

import logging
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

from fastapi import APIRouter, FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning

from stint.domain.ids import TENANT
from stint.http.deferred_imports import NO_TELEMETRY
from stint.http.dependencies import MakeServices
from stint.http.errors import add_error_handlers
from stint.http.middleware.authentication import AuthenticationMiddleware
from stint.http.middleware.bodies import (
    DoneMarkerMiddleware,
    RequestSizeMiddleware,
    ResponseSizeMiddleware,
    ServerErrorMiddleware,
)
from stint.http.middleware.end_user import EndUserMiddleware
from stint.http.middleware.headers import ResponseHeadersMiddleware
from stint.http.middleware.paths import PathsMiddleware
from stint.http.middleware.request_logging import RequestLoggingMiddleware
from stint.http.requests import LazyRouter, scoped_routes
from stint.settings import Settings

logger = logging.getLogger(__name__)


def list_routers() -> tuple[APIRouter, ...]:
    """Return the routers of the whole API, of all functions."""
    from stint.http.routes.inspection import list_parts  # noqa: PLC0415 - to build all routes costs a cold start 30 ms

    return list_parts()


@asynccontextmanager
async def prepare(app: FastAPI) -> AsyncIterator[None]:
    """Make the services at the start of the server, because their clients take time, if it sends a lifespan event."""
    try:
        app.state.make_services(TENANT)
        if app.state.open_ahead is not None:
            import_module("stint.http.attempts")
            await app.state.open_ahead()
    except Exception:  # the first request tries again, and returns the error
        logger.exception("The services could not be created before the first request")
    yield


def create_app(
    function: str,
    *routers: APIRouter | LazyRouter,
    make_services: MakeServices,
    read_settings: Callable[[], Settings],
    buffered: bool,
    open_ahead: Callable[[], Awaitable[None]] | None = None,
) -> FastAPI:
    """Make the app of a route group. `buffered` groups keep their responses within Lambda's limit.

    `open_ahead` opens what most first requests need. It is called once the services are made.

    The registry group serves the OpenAPI document of the whole API.
    """
    # FastAPI ignores this harmless warning of pydantic when it declares a route, but schemas are built later.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        strict_content_type=False,
        lifespan=prepare,
        telemetry=NO_TELEMETRY,
    )
    app.state.make_services = make_services
    app.state.read_settings = read_settings
    app.state.list_routers = list_routers
    app.state.open_ahead = open_ahead
    for router in routers:  # `include_router` would declare each route again, at its first request
        app.router.routes.extend(scoped_routes(router) if isinstance(router, APIRouter) else [router])
    add_error_handlers(app)
    app.add_middleware(RequestSizeMiddleware, read_settings=read_settings)  # the last one that sees a request
    app.add_middleware(EndUserMiddleware)
    app.add_middleware(AuthenticationMiddleware, read_settings=read_settings)
    if buffered:
        app.add_middleware(ResponseSizeMiddleware)
    app.add_middleware(PathsMiddleware, finds_base=buffered)
    app.add_middleware(DoneMarkerMiddleware)
    app.add_middleware(ServerErrorMiddleware)
    app.add_middleware(ResponseHeadersMiddleware, read_settings=read_settings)
    app.add_middleware(RequestLoggingMiddleware, function=function)  # the first one
    return app
