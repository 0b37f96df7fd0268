"""Agents and sessions: create, list, delete; agents: get."""

from mangum import Mangum

from stint.bootstrap.agents import make_services
from stint.http.app import create_app
from stint.http.routes import agents

app = create_app("agents", agents.router, make_services=make_services, buffered=True)
handler = Mangum(app, lifespan="off")
