"""The function of administration: API keys, and stops of running work."""

import stint  # noqa: F401 - first, so that all packages come from the archives of the build

# isort: split

from mangum import Mangum

from stint.bootstrap.operator import OperatorComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.routes import admin
from stint.settings import load_settings

composition = OperatorComposition(load_settings)
start(composition)
app = create_app(
    "admin", admin.router, make_services=composition.make_services, read_settings=load_settings, buffered=True
)
handler = Mangum(app, lifespan="off")
