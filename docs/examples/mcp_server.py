"""An MCP server with one tool: `.venv/bin/python docs/examples/mcp_server.py`, then http://127.0.0.1:8000/mcp.

With the variable TOKEN, it answers only requests with this bearer token.
"""

import os

import uvicorn
from mcp.server.fastmcp import FastMCP
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN = os.environ.get("TOKEN")
server = FastMCP("demo", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


class BearerToken:
    """Refuses requests without the token."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_request = scope["type"] == "http"
        if is_request and dict(scope["headers"]).get(b"authorization") != f"Bearer {TOKEN}".encode():
            await Response(status_code=401)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


if __name__ == "__main__":
    app = server.streamable_http_app()
    if TOKEN:
        app.add_middleware(BearerToken)
    uvicorn.run(app, host=server.settings.host, port=server.settings.port, log_level="critical")
