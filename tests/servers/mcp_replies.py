"""Replies of a scripted MCP server: streamable HTTP with JSON responses, without sessions."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

OPEN = {"type": "object"}
INITIALIZED = {
    "protocolVersion": "2025-03-26",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "t", "version": "1"},
}


def reply(message: Any, status: int = 200) -> Reply:
    """Return a JSON response."""
    return Reply((json.dumps(message).encode(),), status, {"content-type": "application/json"})


def refuse_discovery(received: Received) -> Reply | None:
    """Return the answer of an older server to the question for its revision; None to any other request."""
    return Reply(status=404) if received.headers.get("mcp-method") == "server/discover" else None


def answer_with(tools: Sequence[str | dict[str, Any]]) -> Callable[[Received], Reply]:
    """Return the function of a server that has these tools. Each call returns the tool's name and arguments."""
    listed = [{"name": tool, "inputSchema": OPEN} if isinstance(tool, str) else tool for tool in tools]

    def answer(received: Received) -> Reply:
        if received.method != "POST":
            return Reply(status=405)
        if (refusal := refuse_discovery(received)) is not None:
            return refusal
        message = received.json()
        if "id" not in message:
            return Reply(status=202)
        called = {
            "content": [{"type": "text", "text": f"ran {json.dumps(message.get('params', {}).get('arguments'))}"}]
        }
        results = {"initialize": INITIALIZED, "tools/list": {"tools": listed}, "tools/call": called}
        return reply({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})

    return answer


def calls_of(server: ScriptedHTTPServer) -> list[tuple[str, Any]]:
    """Return the tools that were called, with their arguments."""
    bodies = [request.json() for request in server.requests if request.method == "POST"]
    return [(body["params"]["name"], body["params"]["arguments"]) for body in bodies if body["method"] == "tools/call"]
