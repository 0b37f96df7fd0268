"""Messages of MCP to the server of the API, written by hand."""

import json
from typing import Any

import httpx

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
PATH = "/v1/mcp"
Answer = dict[str, Any]


def modern(method: str, message_id: Any = 1, meta: dict[str, Any] | None = None, **params: Any) -> dict[str, Any]:
    """Return a request of the newer revision."""
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": {"_meta": META | (meta or {}), **params}}


def legacy(method: str, message_id: Any = 1, **params: Any) -> dict[str, Any]:
    """Return a request of the older revision."""
    return {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}


def headers_of(body: dict[str, Any]) -> dict[str, str]:
    """Return the headers that a client of the body's revision sends."""
    meta = body["params"].get("_meta") or {}
    if "io.modelcontextprotocol/protocolVersion" not in meta:
        return {"mcp-protocol-version": LEGACY}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": body["method"]}
    if "name" in body["params"]:
        headers["mcp-name"] = body["params"]["name"]
    return headers


def post(http: httpx.Client, body: dict[str, Any], path: str = PATH, **headers: str) -> httpx.Response:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.post(path, json=body, headers=headers_of(body) | given)


def send(http: httpx.Client, body: dict[str, Any], path: str = PATH, **headers: str) -> Answer:
    """Send a request, and return its result."""
    response = post(http, body, path, **headers)
    assert response.status_code == 200, response.text
    answer = messages_of(response)[-1]
    assert answer["id"] == body["id"]
    assert "error" not in answer, answer
    result: Answer = answer["result"]
    return result


def messages_of(response: httpx.Response) -> list[Answer]:
    """Return the messages of a response, which may be a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return [json.loads(response.text)]
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def error_of(response: httpx.Response) -> Answer:
    answer = messages_of(response)[-1]
    assert "result" not in answer, answer
    error: Answer = answer["error"]
    return error


def tool_of(http: httpx.Client, agent_id: str) -> str:
    """Return the name of an agent's tool."""
    [tool] = send(http, modern("tools/list"), f"/v1/agents/{agent_id}/mcp")["tools"]
    return str(tool["name"])


def call(name: str, message: str, message_id: Any = 1, **params: Any) -> dict[str, Any]:
    """Return a call of the newer revision."""
    arguments = {"message": message, **params.pop("arguments", {})}
    return modern("tools/call", message_id, name=name, arguments=arguments, **params)
