"""The function of the agents and sessions: create, list, delete; and get for agents."""

import stint  # noqa: F401 - first, so that all packages come from the archives of the build

# isort: split

from mangum import Mangum

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.routes import agents
from stint.openai_agents.beta import BetaRouter
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
start(composition)
app = create_app(
    "agents",
    BetaRouter("stint.openai_agents.routes.agents", "/v1/agents"),
    agents.router,
    make_services=composition.make_services,
    read_settings=load_settings,
    buffered=True,
)
handler = Mangum(app, lifespan="off")
