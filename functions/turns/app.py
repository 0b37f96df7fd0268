"""The function of turns, steps and whole sessions. It streams, so it runs on the streaming runtime."""

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.routes import turns
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
start(composition)
app = create_app(
    "turns",
    turns.router,
    make_services=composition.make_services,
    read_settings=load_settings,
    buffered=False,
    open_ahead=composition.open_ahead,
)
