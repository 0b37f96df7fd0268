"""Stint's routes as one app for uvicorn: the same code without Lambda's runtime and API Gateway's front."""

from stint.bootstrap.agents import AgentsComposition
from stint.http.app import create_app
from stint.http.routes import agents, turns
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
app = create_app(
    "direct",
    turns.router,
    agents.router,
    make_services=composition.make_services,
    read_settings=load_settings,
    buffered=False,
)
