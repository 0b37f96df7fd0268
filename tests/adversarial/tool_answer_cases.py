"""Answers of tools that no tool should send. After each, its session or conversation must still be usable."""

import json
from typing import Any

from tests.adversarial.case import Case, case, create_session, get, post
from tests.adversarial.hostile_answers import ARGUMENTS, WRONG
from tests.adversarial.peer import PEER, serves
from tests.servers.scripted_http import Received, Reply

JSON_TYPE = {"Content-Type": "application/json"}
SCHEMA: Any = {"type": "object"}
TEXT: Any = [{"type": "text", "text": "x"}]


def nested(levels: int) -> str:
    return '{"a":' + "[" * levels + "]" * levels + "}"


STRUCTURED: dict[str, str] = {
    **{name: text for name, text in ARGUMENTS.items() if text.startswith("{")},
    **{f"nested_{levels}": nested(levels) for levels in (90, 120, 150, 180, 189, 190, 195)},
}
"""Texts of structured content, by the names of tools."""

SOME_WRONG = {name: WRONG[name] for name in ("integer", "list_of_null", "nested", "surrogate")}
SOME_TEXTS = ("brackets", "objects", "infinite", "escaped_surrogate", "raw_nul")

FIELDS: dict[str, str] = {
    "result": "%s",
    "content": '{"content": %s}',
    "block": '{"content": [%s]}',
    "text": '{"content": [{"type": "text", "text": %s}]}',
    "image": '{"content": [{"type": "image", "data": %s, "mimeType": "image/png"}]}',
    "structured": '{"content": [], "structuredContent": %s}',
    "error": '{"content": [], "isError": %s}',
}
"""Results of tools with a place for a value, by its field."""

RESULTS: dict[str, str] = {
    **{f"structured_{name}": FIELDS["structured"] % text for name, text in STRUCTURED.items()},
    **{
        f"{field}_{name}": result % json.dumps(value)
        for name, value in SOME_WRONG.items()
        for field, result in FIELDS.items()
    },
    **{f"text_{name}": FIELDS["text"] % json.dumps(ARGUMENTS[name]) for name in SOME_TEXTS},
}
"""Results of tools as JSON, by their names."""

SOME_RESULTS = ("structured_nested_90", "structured_nested_180", "structured_nul", "structured_keys", "text_brackets")
"""Those that a session with a server does not wait for until its timeout."""

LISTED: dict[str, str] = {
    "deep_schema": f'{{"name": "t", "inputSchema": {{"type": "object", "x": {nested(180)}}}}}',
    "infinite_schema": '{"name": "t", "inputSchema": {"type": "object", "x": 1e999}}',
    "surrogate_in_schema": '{"name": "t", "inputSchema": {"type": "object", "description": "\\ud800"}}',
    "deep_annotations": f'{{"name": "t", "inputSchema": {{}}, "annotations": {{"x": {nested(180)}}}}}',
    "nul_in_name": '{"name": "t\\u0000", "inputSchema": {"type": "object"}}',
    "no_name": '{"name": 7, "inputSchema": {"type": "object"}}',
    "schema_of_no_object": '{"name": "t", "inputSchema": [1]}',
}
"""Tools in a list as JSON, by the last part of their server's path."""


def reply(received: Received, text: str) -> Reply:
    return Reply(
        (f'{{"jsonrpc": "2.0", "id": {json.dumps(received.json()["id"])}, "result": {text}}}'.encode(),), 200, JSON_TYPE
    )


def answer(received: Received, tools: str) -> Reply:
    message = received.json()
    if "id" not in message:
        return Reply(status=202)
    if message["method"] == "initialize":
        server = {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "h", "version": "1"},
        }
        return reply(received, json.dumps(server))
    if message["method"] == "tools/list":
        return reply(received, f'{{"tools": [{tools}]}}')
    return reply(received, RESULTS.get(message["params"].get("name", ""), '{"content": []}'))


@serves("/mcp/hostile-results")
def answer_badly(received: Received) -> Reply:
    return answer(received, ",".join(json.dumps({"name": name, "inputSchema": SCHEMA}) for name in RESULTS))


for name in LISTED:

    @serves(f"/mcp/listed/{name}")
    def list_badly(received: Received, tools: str = LISTED[name]) -> Reply:
        return answer(received, tools)


def hosted(path: str, **fields: Any) -> dict[str, Any]:
    own = {"type": "mcp", "server_label": "s", "server_url": f"{PEER.decode()}{path}", "require_approval": "never"}
    return {**own, **fields}


def go_on(conversation: str, tools: list[dict[str, Any]], name: str, words: str) -> Case:
    """Use a conversation twice. What the second response reads was stored by the first."""
    for said in (words, "say: ok"):
        body = {"model": "scripted/demo", "input": said, "conversation": conversation}
        answer = yield post("/v1/responses", {**body, "tools": tools if said == words else []})
        assert answer.status == 200 or (said == words and answer.status in (400, 424, 502)), (name, answer.body[:500])
    found = yield get(f"/v1/conversations/{conversation}/items?limit=100")
    assert found.status == 200, (name, found.body[:500])


@case
def answers_of_tools_in_responses() -> Case:
    for name in SOME_RESULTS:
        answer = yield post("/v1/conversations", {})
        tools = [hosted("/mcp/hostile-results", allowed_tools=[name])]
        yield from go_on(answer.json()["id"], tools, name, f"call: {name} {{}}")


@case
def lists_of_tools_in_responses() -> Case:
    for name in LISTED:
        answer = yield post("/v1/conversations", {})
        yield from go_on(answer.json()["id"], [hosted(f"/mcp/listed/{name}")], name, "call: t {}")


@case
def answers_of_tools_in_turns() -> Case:
    endpoint = {"uri": f"{PEER.decode()}/mcp/hostile-results"}
    group = {"toolgroup_id": "mcp::h", "provider_id": "model-context-protocol", "mcp_endpoint": endpoint}
    answer = yield post("/v1/toolgroups", {**group, "args": {"timeout": 0.5}})
    assert answer.status == 200, answer.body
    for name in RESULTS:
        session = yield from create_session(toolgroups=["mcp::h"])
        for words in (f"call: {name} {{}}", "say: ok"):
            answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": words}]})
            assert answer.status == 200, (name, answer.body[:500])
        found = yield get(session)
        assert found.status == 200, (name, found.body[:500])


@serves("/tool/hostile")
def answer_http(received: Received) -> Reply:
    name = received.path.partition("=")[2]
    return Reply((ARGUMENTS[name].encode(errors="surrogatepass"),), 200, JSON_TYPE)


@case
def answers_of_http_tools_in_turns() -> Case:
    tools = [
        {"name": name, "url": f"{PEER.decode()}/tool/hostile?name={name}", "parameters": SCHEMA} for name in ARGUMENTS
    ]
    group = {"toolgroup_id": "http", "provider_id": "remote-execution", "args": {"tools": tools}}
    answer = yield post("/v1/toolgroups", group)
    assert answer.status == 200, answer.body
    session = yield from create_session(toolgroups=["http"])
    for name in ARGUMENTS:
        answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": f"call: {name} {{}}"}]})
        assert answer.status == 200, (name, answer.body[:500])
    found = yield get(session)
    assert found.status == 200, found.body[:500]


@case
def results_of_clients() -> Case:
    """Send texts that clients return as results of their tools, in both APIs."""
    tool = {"name": "lookup", "description": "", "parameters": []}
    for name, text in ARGUMENTS.items():
        if "\ud800" in text:  # a strict parser refuses the whole request
            continue
        session = yield from create_session(client_tools=[tool])
        answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": "call: lookup {}"}]})
        turn = answer.json()
        [call] = turn["output_message"]["tool_calls"]
        result = {"call_id": call["call_id"], "tool_name": "lookup", "content": text, "metadata": {"a": [text]}}
        answer = yield post(f"{session}/turn/{turn['turn_id']}/resume", {"tool_responses": [result]})
        assert answer.status == 200, (name, answer.body[:500])
        answer = yield post(f"{session}/turn", {"messages": [{"role": "user", "content": "say: ok"}]})
        assert answer.status == 200, (name, answer.body[:500])
