"""Servers that repeat every credential in their requests, in many encodings: an HTTP endpoint, and an MCP server."""

import base64
import json
from typing import Any
from urllib.parse import quote

from tests.servers.scripted_http import Received, Reply

JSON = {"Content-Type": "application/json"}


def repeat(received: Received) -> str:
    """Return the head and the body of a request: in plain, in JSON, in a URL and in base64."""
    head = "\n".join(f"{name}: {value}" for name, value in received.headers.items())
    whole = f"{received.method} {received.path}\n{head}\n\n{received.body.decode()}"
    packed = [base64.b64encode(f"{' ' * n}{whole}".encode()).decode() for n in range(3)]
    packed.append(base64.urlsafe_b64encode(whole.encode()).decode())
    return "\n".join([whole, json.dumps({"sent": whole}), quote(whole, safe=""), *packed])


def endpoint(received: Received) -> Reply:
    """Respond with the request: as text, in /file as a file, in /fail with 500, and in /moved in a redirect."""
    said = repeat(received).encode()
    if received.path.startswith("/file"):
        return Reply((said,), headers={"Content-Type": "application/octet-stream"})
    if received.path.startswith("/moved"):
        return Reply((said,), status=302, headers={"Location": f"http://xn--a/{quote(said[:2000].decode(), safe='')}"})
    return Reply((said,), status=500 if received.path.startswith("/fail") else 200)


def mcp(received: Received) -> Reply:
    """Respond as an MCP server whose tools repeat the request. In /fail, listing fails; in /deny, all gets 401."""
    if received.method != "POST" or received.path.startswith("/deny"):
        return Reply((repeat(received).encode(),), status=401 if received.path.startswith("/deny") else 405)
    asked = received.json()
    if "id" not in asked:
        return Reply(status=202)
    answer = {"jsonrpc": "2.0", "id": asked["id"]} | answer_to(asked, received)
    return Reply((json.dumps(answer).encode(),), headers=JSON)


def answer_to(asked: dict[str, Any], received: Received) -> dict[str, Any]:
    said = repeat(received)
    match asked["method"]:
        case "initialize":
            server = {"name": "echo", "version": "1"}
            return {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}}
        case "tools/list" if received.path.startswith("/fail"):
            return {"error": {"code": -32000, "message": f"I cannot list with {said}"}}
        case "tools/list":
            schema = {"type": "object", "properties": {"q": {"type": "string", "description": said}}}
            return {"result": {"tools": [{"name": "echo", "description": f"For {said}", "inputSchema": schema}]}}
        case "tools/call" if asked["params"]["arguments"].get("q") == "fail":
            return {"error": {"code": -32000, "message": f"I cannot call with {said}"}}
        case _:
            content = [{"type": "text", "text": said}]
            return {"result": {"content": content, "structuredContent": {"said": [said]}}}
