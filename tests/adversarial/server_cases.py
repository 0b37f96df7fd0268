"""Hostile responses of the servers in a request: MCP servers, HTTP tools, images by URL, the model's provider."""

import json
from collections.abc import Iterator
from typing import Any

from tests.adversarial.case import Case, case, create_session, post
from tests.adversarial.peer import PEER, json_reply, serves
from tests.servers.scripted_http import Received, Reply

SIZE = 2_900_000
"""Bytes of a response that is not refused for its size."""

PNG = b"\x89PNG\r\n\x1a\n"
EVENTS = {"Content-Type": "text/event-stream"}
CALLS: dict[str, Any] = {
    "text": {"content": [{"type": "text", "text": "x" * SIZE}]},
    "wide": {"content": [{"type": "text", "text": "🙂" + "x" * SIZE}]},
    "structured": {"content": [], "structuredContent": {"a": [{}] * 1_200_000}},
    "texts": {"content": [{"type": "text", "text": ""}] * 150_000},
    "image": {"content": [{"type": "image", "data": "A" * SIZE, "mimeType": "image/png"}]},
    "names": {"content": [], "structuredContent": {f"k{place}": 0 for place in range(190_000)}},
}


def result(received: Received, streamed: bool) -> Reply:
    """Respond as an MCP server. The tool's name selects its result."""
    message = received.json()
    if "id" not in message:
        return Reply(status=202)
    match message["method"]:
        case "initialize":
            found: Any = {
                "protocolVersion": "2025-03-26",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            }
        case "tools/list":
            found = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in CALLS]}
        case _:
            found = CALLS.get(message["params"].get("name", ""), {})
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found}, ensure_ascii=False).encode()
    if streamed:
        return Reply((b"event: message\ndata: " + text + b"\n\n",), 200, EVENTS)
    return Reply((text,), 200, {"Content-Type": "application/json"})


@serves("/mcp/json")
def answer_json(received: Received) -> Reply:
    return result(received, streamed=False)


@serves("/mcp/events")
def answer_events(received: Received) -> Reply:
    return result(received, streamed=True)


@serves("/mcp/lines")
def answer_lines(received: Received) -> Reply:
    return Reply((b":\n" * (SIZE // 2),), 200, EVENTS)


@serves("/mcp/blank-lines")
def answer_blank_lines(received: Received) -> Reply:
    return Reply((b"\n" * SIZE,), 200, EVENTS)


@serves("/mcp/punycode")
def answer_in_punycode(received: Received) -> Reply:
    return Reply(
        (b"data: a-" + b"b" * 800_000 + b"\n\n",), 200, {"Content-Type": "text/event-stream; charset=punycode"}
    )


@serves("/mcp/chunks")
def answer_in_chunks(received: Received) -> Reply:
    return Reply((b":",) * 60_000, 200, EVENTS)


@serves("/mcp/pages")
def answer_pages(received: Received) -> Reply:
    """List one large tool on each of an endless number of pages."""
    message = received.json()
    if message.get("method") != "tools/list":
        return result(received, streamed=False)
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {f"p{place}": {} for place in range(30_000)}}}
    return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": [tool], "nextCursor": "x"}})


@case
def answers_of_mcp_servers() -> Case:
    for kind in ("json", "events"):
        yield from call_tools(f"mcp::{kind}", f"{PEER.decode()}/mcp/{kind}", CALLS)


def call_tools(group: str, url: str, names: Iterator[str] | dict[str, Any]) -> Case:
    endpoint = {"uri": url}
    yield post(
        "/v1/toolgroups", {"toolgroup_id": group, "provider_id": "model-context-protocol", "mcp_endpoint": endpoint}
    )
    session = yield from create_session(toolgroups=[group])
    for name in names:
        message = {"role": "user", "content": f"call: {name} {{}}"}
        answer = yield post(f"{session}/turn", {"messages": [message]})
        assert answer.status in (200, 400, 502), answer.body[:500]


@case
def streams_of_mcp_servers() -> Case:
    for kind in ("lines", "blank-lines", "punycode", "chunks", "pages"):
        tool = {
            "type": "mcp",
            "server_label": "x",
            "server_url": f"{PEER.decode()}/mcp/{kind}",
            "require_approval": "never",
        }
        answer = yield post("/v1/responses", {"model": "scripted/demo", "input": "say: ok", "tools": [tool]})
        assert answer.status in (200, 400, 424, 502), answer.body[:500]


@serves("/tool/text")
def answer_tool(received: Received) -> Reply:
    return Reply(("🙂".encode() + b"x" * SIZE,), 200, {"Content-Type": "text/plain"})


@serves("/tool/punycode")
def answer_tool_in_punycode(received: Received) -> Reply:
    return Reply((b"a-" + b"b" * 800_000,), 200, {"Content-Type": "text/plain; charset=punycode"})


@serves("/tool/escapes")
def answer_tool_in_escapes(received: Received) -> Reply:
    return Reply((rb"\ud800" * 100_000,), 200, {"Content-Type": "application/json; charset=unicode_escape"})


@serves("/tool/objects")
def answer_tool_with_objects(received: Received) -> Reply:
    return Reply((b"[" + b"{}," * (SIZE // 3) + b"{}]",), 200, {"Content-Type": "application/json"})


@serves("/tool/file")
def answer_tool_with_file(received: Received) -> Reply:
    return Reply((PNG + b"\0" * SIZE,), 200, {"Content-Type": "image/png"})


@case
def answers_of_http_tools() -> Case:
    names = ("text", "punycode", "escapes", "objects", "file")
    tools = [
        {
            "name": name,
            "description": "",
            "url": f"{PEER.decode()}/tool/{name}",
            "method": "GET",
            "headers": {"Authorization": "Bearer a-secret-of-the-tool"},
            "parameters": {"type": "object"},
        }
        for name in names
    ]
    answer = yield post(
        "/v1/toolgroups", {"toolgroup_id": "http", "provider_id": "remote-execution", "args": {"tools": tools}}
    )
    assert answer.status == 200, answer.body
    session = yield from create_session(toolgroups=["http"])
    for name in names:
        message = {"role": "user", "content": f"call: {name} {{}}"}
        answer = yield post(f"{session}/turn", {"messages": [message]})
        assert answer.status == 200, answer.body[:500]


@serves("/image")
def serve_image(received: Received) -> Reply:
    return Reply((PNG + b"\0" * 3_900_000,), 200, {"Content-Type": "image/png"})


@case
def images_by_url() -> Case:
    for count in (3, 300):
        image = {"type": "image", "image": {"url": {"uri": f"{PEER.decode()}/image"}}}
        session = yield from create_session(model="fetched/any")
        message = {"role": "user", "content": [image] * count}
        answer = yield post(f"{session}/turn", {"messages": [message]})
        assert answer.status == (200 if count == 3 else 400), answer.body[:500]
