"""Stint's routes as one app for uvicorn: the same code without Lambda's runtime and API Gateway's front."""

from stint.bootstrap.agents import make_services
from stint.http.app import create_app
from stint.http.routes import agents, turns

app = create_app("direct", turns.router, agents.router, make_services=make_services, buffered=False)
