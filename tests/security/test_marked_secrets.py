"""A marker in every field and header that may carry a credential, and a search for all of them afterwards."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.api.api_client import create_agent, create_session, say
from tests.api.leaks import leaks
from tests.security.attacks import Record
from tests.security.conftest import TRACES_KEY
from tests.security.secret_search import Search, look_for
from tests.security.stack import Stack
from tests.security.tricks import PUBLIC
from tests.servers import echo
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.http import streaming

MARKS = {
    name: f"mk{number:02d}/unlikely+{name}-Zq7{number:02d}"
    for number, name in enumerate(
        (
            *("header", "basic", "argument", "agent_argument", "turn_argument", "provider_data", "mcp_header"),
            *("authorization", "server_header", "metadata", "shield", "userinfo", "image", "cookie", "api_key_header"),
            *("token", "wrong_key", "idempotency", "generator", "waiting_argument"),
            *("inline_authorization", "inline_header", "inline_query", "turn_server"),
            "background_query",
        )
    )
}
CALLED = frozenset(
    {
        "background_query",
        *("header", "basic", "agent_argument", "turn_argument", "authorization", "server_header", "mcp_header"),
        *("generator", "inline_authorization", "inline_header", "inline_query", "turn_server"),
    }
)
"""Markers that the servers of the tools need."""

HTTP, MCP = "remote-execution", "model-context-protocol"


ANSWERS = {True: echo.mcp, False: echo.endpoint}


@pytest.fixture
def tools() -> Iterator[ScriptedHTTPServer]:
    """Yield a server whose tools repeat all that they get, in several encodings. Below /mcp it is an MCP server."""
    with ScriptedHTTPServer(lambda received: ANSWERS["/mcp" in received.path](received)) as server:
        yield server


def send_registrations(http: httpx.Client, search: Search, endpoint: str, mcp_endpoint: str) -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    headers = {"X-Api-Key": MARKS["header"], "Authorization": f"Basic {MARKS['basic']}"}
    tool = {"name": "echo", "parameters": schema, "url": f"{endpoint}/", "headers": headers}
    args = {"tools": [tool], "api_key": MARKS["argument"]}
    search(http.post("/v1/toolgroups", json={"toolgroup_id": "peer", "provider_id": HTTP, "args": args}))
    body = {"toolgroup_id": "mcp::peer", "provider_id": MCP, "mcp_endpoint": {"uri": mcp_endpoint}}
    search(http.post("/v1/toolgroups", json=body))
    metadata = {"api_key": MARKS["metadata"]}
    search(
        http.post("/v1/models", json={"model_id": "own", "provider_model_id": "scripted/demo", "metadata": metadata})
    )
    params = {"api_key": MARKS["shield"], "phrases": ["x"]}
    search(http.post("/v1/shields", json={"shield_id": "own", "provider_id": "deny-list", "params": params}))


def send_turns(http: httpx.Client, search: Search) -> str:
    """Run turns whose tool repeats its request, and return the agent's id."""
    group = {"name": "peer", "args": {"api_key": MARKS["agent_argument"]}}
    agent = create_agent(http, toolgroups=[group])
    session = create_session(http, agent)
    for stream in (True, False):
        search(say(http, session, 'call: echo {"q": "tea"}', stream=stream))
    overrides = [{"name": "peer", "args": {"api_key": MARKS["turn_argument"]}}]
    search(say(http, session, 'call: echo {"q": "tea"}', toolgroups=overrides))
    document = {"content": {"uri": f"http://ann:{MARKS['userinfo']}@{PUBLIC}/"}, "mime_type": "text/plain"}
    search(say(http, session, "Hello", documents=[document]))
    image = {"type": "image", "image": {"url": {"uri": f"http://ann:{MARKS['image']}@{PUBLIC}/"}}}
    search(say(http, session, image))
    read_traces(http, search, session)
    return agent


def read_traces(http: httpx.Client, search: Search, session: str) -> None:
    """Read a session, and the trace of each of its turns."""
    for each in search(http.get(session)).json()["turns"]:
        search(http.get(f"{session}/turn/{each['turn_id']}/trace"))


def send_retrieval(http: httpx.Client, search: Search, endpoint: str) -> None:
    """Run a turn whose retrieval has a query that an endpoint writes, and one that fails."""
    post_db = {"vector_db_id": "marked", "embedding_model": "hashed/words-384"}
    search(http.post("/v1/vector-dbs", json=post_db))
    for path in ("", "fail"):
        tool = {"name": "f", "url": f"{endpoint}/{path}", "method": "POST", "headers": {"X-Key": MARKS["generator"]}}
        args = {"type": "custom", "toolgroup": "builtin::remote_execution", "args": {"tools": [tool]}}
        banks = {"vector_db_ids": ["marked"], "memory_banks": [{"bank_id": "marked"}]}
        retrieval = {"retrieve": "only_before_inference", "query_generator_config": args, **banks}
        agent = create_agent(http, toolgroups=[{"name": "builtin::rag", "args": retrieval}])
        session = create_session(http, agent)
        search(say(http, session, "tea"))
        read_traces(http, search, session)
        search(http.get(f"/v1/agents/{agent}"))


def send_waiting(http: httpx.Client, search: Search) -> None:
    """Let a turn wait for its session, and cancel it, so that its record stays."""
    session = create_session(http, create_agent(http))
    groups = [{"name": "peer", "args": {"api_key": MARKS["waiting_argument"]}}]
    running = {"messages": [{"role": "user", "content": "slow: 1"}], "stream": True}
    with http.stream("POST", f"{session}/turn", json=running) as first:
        parts = first.iter_bytes()
        next(parts)
        waits = search(say(http, session, "tea", toolgroups=groups, when_busy="enqueue"))
        turn = f"{session}/turn/{waits.json()['turn_id']}"
        assert (waits.status_code, search(http.post(f"{turn}/cancel")).json()["status"]) == (202, "cancelled")
        search.answers.append(str(list(parts)))
    search(http.get(turn))


def send_servers(http: httpx.Client, search: Search, mcp_endpoint: str) -> None:
    """Run turns with MCP servers that nobody has registered, which repeat their requests after an approval."""

    def server(label: str, url: str, **args: Any) -> dict[str, Any]:
        given = {"server_label": label, "server_url": url, "require_approval": "always"}
        return {"name": "builtin::mcp", "args": given | args}

    headers = {"X-Api-Key": MARKS["inline_header"]}
    url = f"{mcp_endpoint}?key={quote(MARKS['inline_query'], safe='')}"
    agent = create_agent(
        http, toolgroups=[server("a", url, authorization=MARKS["inline_authorization"], headers=headers)]
    )
    other = create_agent(http)
    overrides = [server("b", mcp_endpoint, authorization=MARKS["turn_server"], allowed_tools=["echo"])]
    for session, more in ((create_session(http, agent), {}), (create_session(http, other), {"toolgroups": overrides})):
        paused = search(say(http, session, 'call: echo {"q": "tea"}', **more)).json()
        approvals = [{"call_id": call_id, "approve": True} for call_id in paused["pending_approvals"]]
        path, body = f"{session}/turn/{paused['turn_id']}", {"tool_responses": [], "approvals": approvals}
        if not more:  # the record of the other turn has its credentials, as long as it waits
            search(http.post(f"{path}/resume", json=body))
        search(http.post(f"{path}/resume", json=body | {"stream": True}))
        read_traces(http, search, session)
        if more:
            http.delete(session)
    search(http.get(f"/v1/agents/{agent}"))


def send_responses(http: httpx.Client, search: Search, mcp_endpoint: str) -> None:
    """Create responses whose MCP server repeats its requests."""
    for fields in ({"authorization": MARKS["authorization"]}, {"headers": {"X-Api-Key": MARKS["server_header"]}}):
        tool = {"type": "mcp", "server_label": "p", "server_url": mcp_endpoint, "require_approval": "never", **fields}
        body: dict[str, Any] = {"model": "scripted/demo", "input": 'call: echo {"q": "tea"}', "tools": [tool]}
        for stream in (False, True):
            search(http.post("/v1/responses", json=body | {"stream": stream}))
        refused = search(http.post("/v1/responses", json=body | {"background": True}))
        assert refused.status_code == 400, refused.text
    for server in (mcp_endpoint, f"{mcp_endpoint}/fail?key={quote(MARKS['background_query'], safe='')}"):
        tool = {"type": "mcp", "server_label": "p", "server_url": server, "require_approval": "never"}
        search.run_in_background(http, input='call: echo {"q": "tea"}', tools=[tool])
    data = {
        "mcp_headers": {mcp_endpoint: {"X-Key": MARKS["mcp_header"]}},
        "brave_search_api_key": MARKS["provider_data"],
    }
    headers = {"x-llamastack-provider-data": json.dumps(data)}
    for query in ("tea", "fail"):
        call = {"tool_name": "mcp::peer/echo", "kwargs": {"q": query}}
        search(http.post("/v1/tool-runtime/invoke", json=call, headers=headers))
    headers |= {"cookie": MARKS["cookie"], "x-api-key": MARKS["api_key_header"]}
    headers |= {"idempotency-key": MARKS["idempotency"]}
    search(http.post("/v1/responses", json={"model": "scripted/demo", "input": "Hello"}, headers=headers))


def send_wrong_credentials(http: httpx.Client, search: Search) -> None:
    for name, header in (("token", "Bearer {}"), ("wrong_key", "Bearer stk_{}")):
        search(http.get("/v1/agents", headers={"authorization": header.format(MARKS[name])}))


def read_everything(http: httpx.Client, search: Search, agent: str) -> None:
    lists = ("agents", "toolgroups", "tools", "models", "shields", "responses", "providers", "conversations", "usage")
    ones = (f"agents/{agent}", "toolgroups/peer", "models/own", "shields/own", "tools/echo", "admin/keys")
    for path in (*lists, *ones):
        search(http.get(f"/v1/{path}"))
    for each in http.get("/v1/responses").json()["data"]:
        search(http.get(f"/v1/responses/{each['id']}/trace"))


def test_no_marked_secret_is_found_afterwards(
    stack: Stack,
    search: Search,
    tools: ScriptedHTTPServer,
    record_property: Record,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streaming, "SILENT_SECONDS", 0.1)
    endpoint = tools.url.replace("127.0.0.1", PUBLIC)
    mcp_endpoint = f"{endpoint}/mcp"
    key = stack.create_key("marked")
    with stack.client(key.key) as http:
        made = search(http.post("/v1/admin/keys", json={})).json()
        send_registrations(http, search, endpoint, mcp_endpoint)
        agent = send_turns(http, search)
        send_retrieval(http, search, endpoint)
        send_waiting(http, search)
        send_servers(http, search, mcp_endpoint)
        send_responses(http, search, mcp_endpoint)
        send_wrong_credentials(http, search)
        rotated = http.post(f"/v1/admin/keys/{made['id']}/rotate", json={}).json()
        search.answers[0] = search.answers[0].replace(made["key"], "", 1)
        read_everything(http, search, agent)

    keys = {"key": key.key[-64:], "made": made["key"][-64:], "new": rotated["key"][-64:], "traces": TRACES_KEY}
    look_for(MARKS | keys, search, stored={"background_query"}).record(record_property)
    assert len(search.answers) > 25
    sent = {name for name, mark in MARKS.items() if any(leaks(echo.repeat(each), mark) for each in tools.requests)}
    assert sent >= CALLED
