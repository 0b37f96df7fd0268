"""The function of models, tools, shields, providers, health, version, the OpenAPI document, and the pages."""

from mangum import Mangum

from stint.bootstrap.agents import AgentsComposition
from stint.http.app import create_app
from stint.http.routes import inspection, pages, registry, shields, tools
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
routers = (registry.router, tools.router, shields.router, inspection.router, pages.router)
app = create_app(
    "registry", *routers, make_services=composition.make_services, read_settings=load_settings, buffered=True
)
handler = Mangum(app, lifespan="off")
