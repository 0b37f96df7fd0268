"""The function of agents for clients that speak MCP, A2A or AG-UI. It streams, so it runs on the streaming runtime.

A process loads a protocol with its first request, and a build without a protocol (PROTOCOLS) never gets one.
"""

from stint.bootstrap.agents import AgentsComposition
from stint.bootstrap.restore import start
from stint.http.app import create_app
from stint.http.requests import LazyRouter
from stint.settings import load_settings

composition = AgentsComposition(load_settings)
start(composition)
app = create_app(
    "protocols",
    LazyRouter(
        "stint.mcp_server.routes", "/v1/mcp", "/v1/agents/{agent_id}/mcp", "/.well-known/oauth-protected-resource"
    ),
    LazyRouter("stint.a2a.routes", "/v1/agents/{agent_id}/a2a", "/.well-known/agent-card.json"),
    LazyRouter("stint.ag_ui.routes", "/v1/agents/{agent_id}/ag-ui"),
    make_services=composition.make_services,
    read_settings=load_settings,
    buffered=False,
    open_ahead=composition.open_ahead,
)
