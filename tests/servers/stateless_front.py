"""The tools of a server of `mcp` 1 in the revision 2026-07-28: requests without a session, checked strictly.

It has a tool of its own, `book`, which asks its client, and a second time if too many come. Its state is signed.
"""

import hashlib
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

from mcp import types
from mcp.server.fastmcp import FastMCP
from mcp.server.lowlevel.server import request_ctx
from mcp.shared.context import RequestContext
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

REVISION = "2026-07-28"
META = "io.modelcontextprotocol/"
CITY = {"type": "string", "x-mcp-header": "City"}
GUESTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "minimum": 1, "description": "How many come."},
        "window": {"type": "boolean"},
        "table": {"type": "string", "enum": ["inside", "outside"]},
    },
    "required": ["guests"],
}
SURE: dict[str, Any] = {"type": "object", "properties": {}}
OWN_TOOLS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": "Asks.",
        "inputSchema": {"type": "object", "properties": {"date": {"type": "string"}}},
    }
    for name in ("book", "think", "visit", "poll")
] + [
    {"name": "weather", "inputSchema": {"type": "object", "properties": {"city": CITY}}},
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "array", "items": CITY}}}},
]


class StatelessFront:
    """Answers requests with the tools of a server. `ttl` is that of its lists, in milliseconds."""

    def __init__(self, server: FastMCP, stats: Counter[str], *, streams: bool, ttl: int = 60_000) -> None:
        self.server = server
        self.stats = stats
        self.streams = streams
        self.ttl = ttl

    async def answer(self, request: Request) -> Response:
        message = await request.json()
        refused = self.refuse(request, message)
        if refused is not None:
            return refused
        result = await self.run(request, message["method"], message["params"])
        if isinstance(result, Response):
            return result
        document = {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete"} | result}
        if not self.streams:
            return JSONResponse(document)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "busy"}}
        events = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in (note, document))
        return Response(f": beat\r\n\r\n{events}", media_type="text/event-stream")

    def refuse(self, request: Request, message: dict[str, Any]) -> Response | None:
        """Return the refusal of a request that is not of this revision."""
        method, params = message.get("method"), message.get("params") or {}
        meta = params.get("_meta") or {}
        if f"{META}clientCapabilities" not in meta:
            return error(message, 400, -32602, "params._meta has no capabilities of the client")
        named = params.get("name")
        header = request.headers.get("mcp-name")
        same = request.headers.get("mcp-protocol-version") == meta.get(f"{META}protocolVersion")
        if (
            not same
            or request.headers.get("mcp-method") != method
            or (named and header not in (named, "=?base64?bsO2cGU=?="))
        ):
            return error(message, 400, -32020, "a header does not match the body")
        if meta[f"{META}protocolVersion"] != REVISION:
            data = {"supported": [REVISION], "requested": meta[f"{META}protocolVersion"]}
            return error(message, 400, -32022, "Unsupported protocol version", data)
        return None

    async def run(self, request: Request, method: str, params: dict[str, Any]) -> dict[str, Any] | Response:
        message = await request.json()
        match method:
            case "server/discover":
                cached = {"ttlMs": 0, "cacheScope": "private"}
                return {"supportedVersions": [REVISION], "capabilities": {"tools": {}}, **cached}
            case "tools/list":
                return await self.list_tools(params.get("cursor"))
            case "tools/call" if params["name"] == "weather" and "mcp-param-city" not in request.headers:
                return error(message, 400, -32020, "the header Mcp-Param-City is missing")
            case "tools/call":
                return await self.call(request, params)
            case _:
                return error(message, 404, -32601, "Method not found")

    async def list_tools(self, cursor: str | None) -> dict[str, Any]:
        listed = [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await self.server.list_tools()
        ]
        page = {"tools": OWN_TOOLS, "nextCursor": "2"} if cursor is None else {"tools": listed}
        return page | {"ttlMs": self.ttl, "cacheScope": "private"}

    async def call(self, request: Request, params: dict[str, Any]) -> dict[str, Any] | Response:
        arguments = params.get("arguments") or {}
        match params["name"]:
            case "book" | "think" | "visit" | "poll":
                return self.ask(params, arguments, params["_meta"][f"{META}clientCapabilities"])
            case "weather":
                return text(f"{arguments['city']} {request.headers['mcp-param-city']}")
        # The package's own handler, with the context that its session would have set.
        quiet = SimpleNamespace(send_log_message=note_nothing, send_progress_notification=note_nothing)
        context: Any = RequestContext("1", None, quiet, None, request=request)
        token = request_ctx.set(context)
        try:
            handler = self.server._mcp_server.request_handlers[types.CallToolRequest]
            asked = types.CallToolRequestParams(name=params["name"], arguments=arguments)
            found = await handler(types.CallToolRequest(params=asked))
        finally:
            request_ctx.reset(token)
        return found.root.model_dump(mode="json", by_alias=True, exclude_none=True)

    def ask(self, params: dict[str, Any], arguments: dict[str, Any], capabilities: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a tool that asks, or its question."""
        name, state = params["name"], params.get("requestState")
        if name == "poll":
            self.stats["polled"] += 1
            return text("done") if state == sign("2") else {"resultType": "input_required", "requestState": sign("2")}
        if name == "think":
            return question({"q": {"method": "sampling/createMessage", "params": {}}}, sign("0"))
        if name == "visit":
            link = {"mode": "url", "message": "Log in", "url": "https://evil.example/login"}
            return question({"q": {"method": "elicitation/create", "params": link}}, sign("0"))
        if "form" not in capabilities.get("elicitation", {}):
            return text("nobody to ask", failed=True)
        if state is None:
            self.stats["asked"] += 1
            return question({"party": form(f"How many come on {arguments.get('date')}?", GUESTS)}, sign("1"))
        answers = params.get("inputResponses") or {}
        if state == sign("1"):
            party = answers["party"]
            if party["action"] != "accept":
                return text(f"not booked: {party['action']}")
            if party["content"]["guests"] > 10:
                return question({"sure": form("So many?", SURE)}, sign("2"))
            self.stats["booked"] += 1
            return text(f"booked {json.dumps(party['content'], sort_keys=True)}")
        if state != sign("2"):
            return text("a forged state", failed=True)
        self.stats["booked"] += 1
        return text(f"booked a hall: {answers['sure']['action']}")


def sign(state: str) -> str:
    return f"{state}.{hashlib.sha256(b'key' + state.encode()).hexdigest()}"


def form(message: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def question(requests: dict[str, Any], state: str) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


def text(said: str, *, failed: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], "isError": failed}


def error(message: dict[str, Any], status: int, code: int, said: str, data: Any = None) -> Response:
    problem = {"code": code, "message": said} | ({} if data is None else {"data": data})
    return JSONResponse({"jsonrpc": "2.0", "id": message.get("id"), "error": problem}, status_code=status)


async def note_nothing(*_: Any, **__: Any) -> None:
    pass
