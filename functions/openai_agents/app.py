"""The function of the sessions of OpenAI's Agents API. It streams, so it runs on the streaming runtime."""

from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.openai_agents.composition import OpenAIAgentsComposition
from stint.openai_agents.routes import sessions, unsupported, vaults
from stint.settings import load_settings

composition = OpenAIAgentsComposition(load_settings)
start(composition)
app = create_app(
    "openai_agents",
    sessions.router,
    vaults.router,
    LazyRouter("stint.openai_agents.routes.automations", "/v1/agents/automations"),
    unsupported.router,
    make_services=composition.make_agents_services,
    read_settings=load_settings,
    buffered=False,
    open_ahead=composition.open_ahead,
)
