"""Models, tools, shields, providers, health, version, the OpenAPI document."""

from mangum import Mangum

from stint.bootstrap import make_services
from stint.http import inspection, registry, shields, tools
from stint.http.app import create_app

routers = (registry.router, tools.router, shields.router, inspection.router)
app = create_app("registry", *routers, make_services=make_services, buffered=True)
handler = Mangum(app, lifespan="off")
