"""A real MCP server of the `mcp` package: `python -m tests.servers.mcp_server`, which prints its port.

It serves streamable HTTP at /mcp (with JSON responses at /json/mcp) and HTTP+SSE at /sse, and the same under /private
only for callers with the right Authorization. Below /stateless it serves the revision 2026-07-28, which the package
does not have (`stateless_front.py`). /stats returns counters of its requests.
"""

import base64
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import anyio
import uvicorn
from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import AnyUrl, BaseModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.servers.stateless_front import StatelessFront

TOKEN = "Bearer right-token"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

stats: Counter[str] = Counter()


class Item(BaseModel):
    name: str
    size: Literal["small", "large"] = "small"


class Sum(BaseModel):
    total: int


def make_server(**settings: Any) -> FastMCP:
    server = FastMCP("test", log_level="CRITICAL", **settings)

    @server.tool(description="Add two integers.", structured_output=False)
    def add(a: int, b: int) -> int:
        stats["add"] += 1
        return a + b

    hints = ToolAnnotations(title="Order", destructiveHint=False)

    @server.tool(description="Order things.", annotations=hints, structured_output=False)
    def order(items: list[Item], note: str | None = None) -> str:
        return ", ".join(f"{item.size} {item.name}" for item in items) + f" ({note})"

    @server.tool()
    def total(numbers: list[int]) -> Sum:
        return Sum(total=sum(numbers))

    @server.tool()
    def structured_only() -> CallToolResult:
        return CallToolResult(content=[], structuredContent={"answer": 42})

    @server.tool(structured_output=False)
    def boom(why: str) -> str:
        raise ValueError(f"boom: {why}")

    @server.tool(structured_output=False)
    def nothing() -> None:
        return None

    @server.tool(structured_output=True)
    def nothing_structured() -> None:
        return None

    @server.tool(structured_output=False)
    async def sleep(seconds: float) -> str:
        stats["sleeping"] += 1
        try:
            await anyio.sleep(seconds)
        finally:
            stats["sleeping"] -= 1
        return "slept"

    @server.tool(structured_output=False)
    async def report(context: Context[Any, Any, Any], steps: int) -> str:
        for step in range(steps):
            await context.report_progress(step, steps)
            await context.info(f"step {step}")
        return "reported"

    @server.tool(structured_output=False)
    def big(size: int) -> str:
        return "x" * size

    @server.tool(structured_output=False)
    def picture() -> list[Any]:
        return ["a dot", Image(data=PNG, format="png")]

    @server.tool(structured_output=False)
    def mixed() -> CallToolResult:
        data = base64.b64encode(b"%PDF-").decode()
        image = base64.b64encode(PNG).decode()
        return CallToolResult(
            content=[
                TextContent(type="text", text="for the model"),
                ImageContent(type="image", data="PHN2Zy8+", mimeType="image/svg+xml"),
                AudioContent(type="audio", data="AAAA", mimeType="audio/wav"),
                ImageContent(
                    type="image", data=image, mimeType="image/png", annotations=Annotations(audience=["user"])
                ),
                ResourceLink(
                    type="resource_link", name="report", uri="https://files.example/r.csv", mimeType="text/csv"
                ),
                EmbeddedResource(
                    type="resource",
                    resource=BlobResourceContents(uri=AnyUrl("file:///r.pdf"), mimeType="application/pdf", blob=data),
                ),
                EmbeddedResource(
                    type="resource", resource=TextResourceContents(uri="file:///r.txt", text="plain text")
                ),
            ]
        )

    @server.tool(structured_output=False)
    def header(context: Context[Any, Any, Any], name: str) -> str:
        assert context.request_context.request
        return str(context.request_context.request.headers.get(name))

    @server.tool(structured_output=False)
    def retire() -> str:
        server.remove_tool("add")
        return "add is gone"

    return server


class Gate:
    """Middleware that counts requests and requires the token for /private."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            stats[f"{scope['method']} {scope['path']}"] += 1
            headers = dict(scope["headers"])
            if scope["path"].startswith("/private") and headers.get(b"authorization") != TOKEN.encode():
                await Response("who are you?", 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def make_app() -> Starlette:
    servers = {
        prefix: make_server(json_response=prefix == "/json", stateless_http=prefix == "/json")
        for prefix in ("", "/json", "/private")
    }

    fronts = {
        prefix: StatelessFront(make_server(), stats, streams=streams)
        for prefix, streams in (("/stateless", True), ("/stateless/json", False), ("/private/stateless", False))
    }

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for server in servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    async def tell(_: Request) -> Response:
        return JSONResponse(stats)

    def routes() -> Iterator[Route | Mount]:
        yield Route("/stats", tell)
        for prefix, front in fronts.items():
            yield Route(f"{prefix}/mcp", front.answer, methods=["POST"])
        for prefix, server in reversed(servers.items()):
            http, sse = server.streamable_http_app(), server.sse_app()
            yield Mount(prefix, app=Starlette(routes=[*http.routes, *sse.routes]))

    app = Starlette(routes=list(routes()), lifespan=lifespan)
    app.add_middleware(Gate)
    return app


if __name__ == "__main__":
    # With an explicit protocol, asyncio sends small responses at once (TCP_NODELAY).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(make_app(), log_level="warning")).run(sockets=[listener])
