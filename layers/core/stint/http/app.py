"""The one way to make a function's web app."""

import logging
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from pydantic.warnings import UnsupportedFieldAttributeWarning

from stint.http.dependencies import TENANT, MakeServices
from stint.http.errors import add_error_handlers
from stint.http.middleware.bodies import DoneMarkerMiddleware, ResponseSizeMiddleware, ServerErrorMiddleware
from stint.http.middleware.headers import CORSMiddleware, NoRetryMiddleware, ResponseHeadersMiddleware
from stint.http.middleware.paths import BasePathMiddleware, OpenAIPrefixMiddleware, TrailingSlashMiddleware
from stint.http.middleware.request_logging import RequestLoggingMiddleware
from stint.settings import Settings

logger = logging.getLogger(__name__)


def list_routers() -> tuple[APIRouter, ...]:
    """List the routers of the whole API, of whichever function."""
    from stint.http.routes.inspection import list_parts  # noqa: PLC0415 - to build all routes costs a cold start 30 ms

    return list_parts()


@asynccontextmanager
async def prepare(app: FastAPI) -> AsyncIterator[None]:
    """Make the services before the first request, where the server tells of its start: their clients take a while."""
    try:
        app.state.make_services(TENANT)
    except Exception:  # the first request makes them again, and answers with what is wrong
        logger.exception("The services could not be made before the first request")
    yield


def create_app(
    function: str,
    *routers: APIRouter,
    make_services: MakeServices,
    load_settings: Callable[[], Settings],
    buffered: bool,
) -> FastAPI:
    """Make the app of a route group. `buffered` groups keep their answers within Lambda's limit.

    The OpenAPI document is served by the registry group, for the whole API.
    """
    # FastAPI silences this harmless warning of pydantic's when it declares a route; schemas are built later than that.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    app = FastAPI(
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        strict_content_type=False,
        lifespan=prepare,
    )
    app.state.make_services = make_services
    app.state.list_routers = list_routers
    for router in routers:
        app.include_router(router)
    add_error_handlers(app)
    app.add_middleware(OpenAIPrefixMiddleware)
    if buffered:
        app.add_middleware(ResponseSizeMiddleware)
        app.add_middleware(BasePathMiddleware)
    app.add_middleware(DoneMarkerMiddleware)
    app.add_middleware(ServerErrorMiddleware)
    app.add_middleware(NoRetryMiddleware)
    app.add_middleware(TrailingSlashMiddleware)
    app.add_middleware(CORSMiddleware, load_settings=load_settings)
    app.add_middleware(ResponseHeadersMiddleware)
    app.add_middleware(RequestLoggingMiddleware, function=function)
    return app
