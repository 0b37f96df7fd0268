"""Server on loopback with tools as HTTP endpoints and as an MCP server. It records each call that has an effect.

Its MCP server has sessions at /mcp, and none at /stateless.
"""

import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

TOOLS = ("book_room", "send_letter")
HELD = "ring_bell"
"""A tool that is not answered while it is held."""

HELD_SECONDS = 30.0
SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
PROTOCOL = "2025-03-26"


class QuietServer(ThreadingHTTPServer):
    """A server that does not report the connections of killed processes."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Gate:
    """Holds calls of the tool HELD. `entered` is set once there is one."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()
        self.opened.set()

    def pass_through(self) -> None:
        """Wait until the gate is open."""
        self.entered.set()
        self.opened.wait(HELD_SECONDS)


class RecordingToolServer:
    """Context manager. `effects` counts the calls by tool and label."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.gate = Gate()
        recorder = self

        class Handler(ToolHandler):
            effects, gate = recorder.effects, recorder.gate

        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @contextmanager
    def holding(self) -> Iterator[Gate]:
        """Leave calls of the tool HELD unanswered until the gate is opened, or the body ends."""
        self.gate.entered.clear()
        self.gate.opened.clear()
        try:
            yield self.gate
        finally:
            self.gate.opened.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def repeated(self) -> list[str]:
        """Return the effects that happened more than once."""
        return [effect for effect, count in self.effects.items() if count > 1]

    @property
    def mcp_tool(self) -> dict[str, Any]:
        """Return the tool of a response that leads here."""
        return {"type": "mcp", "server_label": "desk", "server_url": f"{self.url}/mcp", "require_approval": "never"}

    def registry(self) -> str:
        """Return STINT_REGISTRY with the endpoints as the toolgroup `desk`."""
        tools = [
            {
                "name": name,
                "description": "Have an effect.",
                "url": f"{self.url}/{name}",
                "method": "POST",
                "parameters": SCHEMA,
            }
            for name in (*TOOLS, HELD)
        ]
        group = {"toolgroup_id": "desk", "provider_id": "remote-execution", "args": {"tools": tools}}
        return json.dumps({"toolgroups": [group]})


class ToolHandler(BaseHTTPRequestHandler):
    """Answers a call of a tool, or a message of MCP."""

    effects: ClassVar[Counter[str]]
    gate: ClassVar[Gate]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["content-length"]))
        if not sent:  # the client died
            return
        body = json.loads(sent)
        if self.path == "/stateless" and "mcp-method" not in self.headers:
            self._send(400, b"")
        elif self.path in ("/mcp", "/stateless"):
            answer = self._answer_mcp(body)
            self._send(200 if answer else 202, json.dumps(answer).encode() if answer else b"")
        else:
            self._send(200, self._run(self.path[1:], body).encode())

    def do_GET(self) -> None:
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self._send(200, b"")

    def log_message(self, *_: Any) -> None:
        """Write no log."""

    def _run(self, tool: str, arguments: dict[str, Any]) -> str:
        effect = f"{tool} {arguments.get('label')}"
        self.effects[effect] += 1
        if tool == HELD:
            self.gate.pass_through()
        return f"{effect} is done"

    def _answer_mcp(self, message: dict[str, Any]) -> dict[str, Any] | None:
        result: dict[str, Any]
        match message["method"]:
            case "server/discover" if self.path == "/stateless":
                result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            case "initialize":
                server = {"name": "desk", "version": "1"}
                result = {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                names = *TOOLS, HELD
                result = {"tools": [{"name": name, "description": "", "inputSchema": SCHEMA} for name in names]}
            case "tools/call":
                text = self._run(message["params"]["name"], message["params"]["arguments"])
                result = {"content": [{"type": "text", "text": text}], "isError": False}
            case _:
                return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
