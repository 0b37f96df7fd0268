"""The function of models, tools, shields, providers, webhook endpoints, health, version, OpenAPI, and the pages."""

import stint  # noqa: F401 - first, so that all packages come from the archives of the build

# isort: split

from mangum import Mangum

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.http.routes import pages, registry, shields, tools
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
start(composition)
app = create_app(
    "registry",
    registry.router,
    tools.router,
    shields.router,
    pages.router,
    LazyRouter("stint.http.routes.inspection", "/v1/inspect/", "/v1/openapi.json"),
    LazyRouter("stint.http.routes.webhooks", "/v1/webhook_"),
    make_services=composition.make_services,
    read_settings=load_settings,
    buffered=True,
)
handler = Mangum(app, lifespan="off")
