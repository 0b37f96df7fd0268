"""Many MCP servers, calls and approvals in one request. The cost of each is limited, and so is their sum."""

from collections.abc import Callable
from typing import Any

from tests.adversarial.case import Answer, Case, Request, case, create_session, get, post
from tests.adversarial.peer import PEER, json_reply, serves
from tests.servers.scripted_http import Received, Reply

URL = f"{PEER.decode()}/mcp"
OBJECT = {"type": "object"}
LONG = {"content": [{"type": "text", "text": "x" * 2_900_000}]}
SHORT = {"content": [{"type": "text", "text": "x"}]}


def answer_as(received: Received, tools: list[dict[str, Any]], called: dict[str, Any]) -> Reply:
    """Respond as an MCP server with these tools, which return the same result for every call."""
    message = received.json()
    if "id" not in message:
        return Reply(status=202)
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        },
        "tools/list": {"tools": tools},
        "tools/call": called,
    }
    return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})})


@serves("/mcp/short-result")
def answer_shortly(received: Received) -> Reply:
    return answer_as(received, [{"name": "t", "inputSchema": OBJECT}], SHORT)


@serves("/mcp/long-result")
def answer_at_length(received: Received) -> Reply:
    return answer_as(received, [{"name": "t", "inputSchema": OBJECT}], LONG)


def servers(kind: str, count: int = 1, **fields: Any) -> list[dict[str, Any]]:
    """Return MCP tools, each of a different server."""
    tool = {"type": "mcp", "require_approval": "never", **fields}
    return [{**tool, "server_label": f"l{n}", "server_url": f"{URL}/{kind}?n={n}"} for n in range(count)]


def respond(**fields: Any) -> Request:
    return post("/v1/responses", {"model": "scripted/demo", "input": "say: ok", **fields})


def said(answer: Answer, *statuses: int) -> None:
    assert answer.status in statuses, answer.body[:500]


@case
def many_approvals() -> Case:
    for count in (4_990, 128):
        asked = [
            {"type": "mcp_approval_request", "id": f"mcpr_{n}", "server_label": "l0", "name": "t", "arguments": "{}"}
            for n in range(count)
        ]
        given = [
            {"type": "mcp_approval_response", "approval_request_id": f"mcpr_{n}", "approve": True} for n in range(count)
        ]
        said((yield respond(input=[*asked, *given], tools=servers("short-result"))), 200 if count == 128 else 400)
    said((yield respond(input=[*asked, *given], tools=servers("long-result"))), 200)


@case
def many_calls_with_short_results() -> Case:
    for text in ("call: t {}\n" * 500, "repeat: 99\n" + "call: t {}\n" * 3):
        said((yield respond(input=text, tools=servers("short-result"))), 200)


@case
def many_calls_with_long_results() -> Case:
    for text in ("call: t {}\n" * 20, "repeat: 99\ncall: t {}"):
        said((yield respond(input=text, tools=servers("long-result"))), 200)


def keyed(count: int) -> dict[str, Any]:
    headers = {f"X-{n}": f"{n:05d}Zq9" for n in range(count)}
    return {"name": f"t{count}", "url": f"{PEER.decode()}/tool/text", "headers": headers}


@case
def many_calls_with_many_credentials() -> Case:
    for count, status in ((1_200, 400), (64, 200)):
        args = {"tools": [keyed(count)]}
        group = {"toolgroup_id": f"g{count}", "provider_id": "remote-execution", "args": args}
        said((yield post("/v1/toolgroups", group)), status)
    session = yield from create_session(toolgroups=["g64"])
    for text in ("call: t64 {}\n" * 8, "repeat: 30\ncall: t64 {}"):
        said((yield post(f"{session}/turn", {"messages": [{"role": "user", "content": text}]})), 200)
    headers = {f"X-{n}": f"{n:05d}Zq9" for n in range(100)}
    said((yield respond(input="call: t {}\n" * 20, tools=servers("long-result", headers=headers))), 200)


@case
def many_calls_with_unusual_results() -> Case:
    for name in ("wide", "names", "texts", "image"):
        tool = {"type": "mcp", "server_label": "l", "server_url": f"{URL}/json", "require_approval": "never"}
        said((yield respond(input=f"call: {name} {{}}\n" * 8, tools=[tool])), 200)


LISTS: dict[str, list[dict[str, Any]]] = {
    "long-description": [{"name": "t", "description": "d" * 2_800_000, "inputSchema": OBJECT}],
    "large-description": [{"name": "t", "description": "d" * 900_000, "inputSchema": OBJECT}],
    "wide-schema": [{"name": "t", "inputSchema": OBJECT | {"properties": {f"p{n}": {} for n in range(90_000)}}}],
    "large-schema": [{"name": "t", "inputSchema": OBJECT | {"properties": {f"p{n}": {} for n in range(24_000)}}}],
    "many-tools": [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(512)],
}


def serve_list(tools: list[dict[str, Any]]) -> Callable[[Received], Reply]:
    return lambda received: answer_as(received, tools, SHORT)


for kind, tools in LISTS.items():
    serves(f"/mcp/{kind}")(serve_list(tools))


@case
def many_lists() -> Case:
    said((yield respond(tools=servers("long-description", 100, allowed_tools=["no"]))), 400, 502)
    said((yield respond(tools=servers("large-description", 4, allowed_tools=["no"]))), 200)
    said((yield respond(tools=servers("large-description", 20))), 400, 502)


@case
def many_lists_of_many_values() -> Case:
    for kind in ("wide-schema", "large-schema"):
        said((yield respond(tools=servers(kind, 20, allowed_tools=["no"]))), 400, 502)
    said((yield respond(tools=servers("large-schema", 8, allowed_tools=["no"]))), 200, 400)


@case
def many_toolgroups_with_large_lists() -> Case:
    for n in range(30):
        kind = ("long-description", "wide-schema", "large-schema")[n % 3]
        group = {"toolgroup_id": f"g{n}", "provider_id": "model-context-protocol"}
        said((yield post("/v1/toolgroups", group | {"mcp_endpoint": {"uri": f"{URL}/{kind}?n={n}"}})), 200)
    said((yield get("/v1/tools")), 200)
    said((yield post("/v1/tool-runtime/invoke", {"tool_name": "nope", "kwargs": {}})), 400, 404, 502)


@case
def many_names_of_tools() -> Case:
    names = [f"no{n}" for n in range(190_000)]
    said((yield respond(tools=servers("many-tools", allowed_tools=names))), 400)
    said((yield respond(tools=servers("many-tools", allowed_tools={"tool_names": names}))), 400)
    said((yield respond(tools=servers("many-tools", require_approval={"always": {"tool_names": names}}))), 400, 502)
    said((yield respond(tools=servers("many-tools", allowed_tools=names[:512]))), 200)
