"""The function of models, tools, shields, providers, health, version, the OpenAPI document, and the pages."""

from mangum import Mangum

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import forget_after_restore
from stint.http.app import create_app
from stint.http.routes import inspection, pages, registry, shields, tools
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
forget_after_restore(composition)
routers = (registry.router, tools.router, shields.router, inspection.router, pages.router)
app = create_app(
    "registry", *routers, make_services=composition.make_services, read_settings=load_settings, buffered=True
)
handler = Mangum(app, lifespan="off")
