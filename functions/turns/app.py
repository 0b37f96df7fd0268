"""Turns and steps, and whole sessions: streams, so it runs on the streaming runtime."""

from stint.bootstrap.agents import make_services
from stint.http.app import create_app
from stint.http.routes import turns

app = create_app("turns", turns.router, make_services=make_services, buffered=False)
