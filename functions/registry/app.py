"""Models, tools, shields, providers, health, version, the OpenAPI document, and the pages."""

from mangum import Mangum

from stint.bootstrap.agents import make_services
from stint.http.app import create_app
from stint.http.routes import inspection, pages, registry, shields, tools

routers = (registry.router, tools.router, shields.router, inspection.router, pages.router)
app = create_app("registry", *routers, make_services=make_services, buffered=True)
handler = Mangum(app, lifespan="off")
