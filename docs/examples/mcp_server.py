"""An MCP server with one tool: `.venv/bin/python docs/examples/mcp_server.py`, then http://127.0.0.1:8000/mcp."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("demo", log_level="CRITICAL")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


if __name__ == "__main__":
    server.run(transport="streamable-http")
