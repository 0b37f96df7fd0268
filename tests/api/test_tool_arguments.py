"""Arguments of tools that a model may set, and those that only the configuration or the caller may."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turn
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.api.responses_client import item_of, respond
from tests.servers import tavily
from tests.servers.mcp_replies import answer_with, calls_of
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.mcp.provider import McpTools
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

SECRET = "The vault of the other team is behind the mill."
CLOSED = {"name": "closed", "inputSchema": {"type": "object", "properties": {"q": {}}, "additionalProperties": False}}
OPEN = {"name": "open", "inputSchema": {"type": "object", "properties": {"q": {}}}}


@pytest.fixture
def other_db(http: httpx.Client, app_fixture: AppFixture) -> str:
    body = {"vector_db_id": "other", "embedding_model": "all-MiniLM-L6-v2"}
    http.post("/v1/vector-dbs", json=body).raise_for_status()
    inserted = {"vector_db_id": "other", "documents": [{"document_id": "d1", "content": SECRET}]}
    with ingesting(app_fixture):
        http.post("/v1/tool-runtime/rag-tool/insert", json=inserted).raise_for_status()
    return "other"


def last_result(turn: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = turn["steps"][-2]["tool_responses"][0]
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        {"vector_db_ids": ["other"]},
        {"query_config": {"max_chunks": 1, "chunk_template": "{chunk.content}{index}{metadata}"}},
        {"query_config": {"query_generator_config": {"type": "llm", "model": "scripted/demo", "template": "x"}}},
        {"memory_banks": [{"type": "vector", "bank_id": "other"}]},
        {"retrieve": "before_inference"},
        {"session_id": "s"},
    ],
)
def test_a_model_chooses_the_query_of_a_knowledge_search_only(
    http: httpx.Client, other_db: str, arguments: dict[str, Any]
) -> None:
    session = open_session(http, toolgroups=["builtin::rag"])
    call = {"query": "vault", **arguments}

    asked = turn(http, session, f"call: knowledge_search {json.dumps(call)}")

    result = last_result(asked)
    assert result["metadata"] == {"error": True}
    [failed, note] = [item["text"] for item in result["content"]]
    assert "No vector DBs were provided" in failed
    assert note == f"[These arguments had no effect: '{next(iter(arguments))}'. Its arguments are: query.]"
    assert "mill" not in json.dumps(asked["steps"])


def test_an_agent_and_a_caller_choose_the_vector_dbs(http: httpx.Client, other_db: str) -> None:
    group = {"name": "builtin::rag", "args": {"vector_db_ids": [other_db]}}
    session = open_session(http, toolgroups=[group])
    call = {"query": "vault", "vector_db_ids": ["another"]}

    asked = turn(http, session, f"call: knowledge_search {json.dumps(call)}")
    kwargs = {"query": "vault", "vector_db_ids": [other_db]}
    invoked = http.post("/v1/tool-runtime/invoke", json={"tool_name": "knowledge_search", "kwargs": kwargs}).json()

    assert SECRET in str(last_result(asked)["content"])
    assert SECRET in str(invoked["content"])


def test_a_model_does_not_choose_the_results_of_a_web_search(http: httpx.Client, app_fixture: AppFixture) -> None:
    with ScriptedHTTPServer(tavily.answer) as engine:
        search = WebSearch(Tavily(Guard(["127.0.0.1"]), base_url=engine.url), tavily.KEY)
        app_fixture.tool_providers = {"tavily-search": search}
        session = open_session(http, toolgroups=["builtin::websearch"])

        found = turn(http, session, 'call: brave_search {"query": "tea", "max_results": 20}')
        call = 'call: web_search {"query": "tea", "api_key": "theirs"}'
        include = ["web_search_call.action.sources"]
        hosted = respond(http, call, tools=[{"type": "web_search"}], include=include)
    app_fixture.tool_providers = None

    [hits, note] = [item["text"] for item in last_result(found)["content"]]
    assert len(json.loads(hits)["top_k"]) == 3
    assert "'max_results'" in note
    item = item_of(hosted, "web_search_call")
    assert (item["status"], len(item["action"]["sources"])) == ("completed", 6)
    assert {request.headers["authorization"] for request in engine.requests} == {f"Bearer {tavily.KEY}"}


@pytest.fixture
def endpoint(app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    guard = Guard(["127.0.0.1"])
    with ScriptedHTTPServer(lambda _: Reply((b"done",))) as server:
        app_fixture.tool_providers = {
            "remote-execution": HttpEndpoints(guard),
            "model-context-protocol": McpTools(guard),
        }
        yield server
    app_fixture.tool_providers = None


def register(http: httpx.Client, server: ScriptedHTTPServer, *parameters: str, **fields: Any) -> None:
    tool = {
        "name": "lookup",
        "url": f"{server.url}/x?account=ours&key=abcdefgh",
        "headers": {"Authorization": "Bearer of-the-admin", "X-Account": "ours"},
        "parameters": {"type": "object", "properties": {name: {"type": "string"} for name in parameters}},
    } | fields
    body = {"toolgroup_id": "crm", "provider_id": "remote-execution", "args": {"tools": [tool]}}
    http.post("/v1/toolgroups", json=body).raise_for_status()


def test_a_model_sets_the_declared_arguments_of_an_endpoint_only(
    http: httpx.Client, endpoint: ScriptedHTTPServer
) -> None:
    register(http, endpoint, "q")
    session = open_session(http, toolgroups=["crm"])

    refused = turn(http, session, 'call: lookup {"q": "tea", "account": "theirs", "dry_run": true}')
    taken = turn(http, session, 'call: lookup {"q": "tea"}')

    assert "'account', 'dry_run'" in last_result(refused)["content"]
    assert last_result(taken)["content"] == "done"
    assert [request.path for request in endpoint.requests] == ["/x?account=ours&key=abcdefgh&q=tea"]


def test_no_model_and_no_caller_replaces_what_the_operator_wrote(
    http: httpx.Client, endpoint: ScriptedHTTPServer
) -> None:
    register(http, endpoint)
    theirs = {"account": "theirs", "Key": "theirs", "q": "tea"}
    session = open_session(http, toolgroups=[{"name": "crm", "args": {"account": "theirs"}}])
    headers = {"http_headers": {endpoint.url: {"x-account": "theirs"}}}
    body = {"tool_name": "lookup", "kwargs": theirs}

    turn(http, session, f"call: lookup {json.dumps(theirs)}")
    http.post("/v1/tool-runtime/invoke", json=body).raise_for_status()
    provider_data = {"X-LlamaStack-Provider-Data": json.dumps(headers)}
    refused = http.post("/v1/tool-runtime/invoke", json=body, headers=provider_data)

    assert [request.path for request in endpoint.requests] == ["/x?account=ours&key=abcdefgh&q=tea"] * 2
    assert refused.status_code == 400
    assert "may set the header 'x-account'" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("kind", "body", "title", "sent_body"),
    [
        ("application/x-www-form-urlencoded", "a=ours&t={title}", "x&a=theirs", "a=ours&t=x%26a%3Dtheirs"),
        ("application/json", '{"a": 1, "t": "{title}"}', 'x", "a": 2, "', r'{"a": 1, "t": "x\", \"a\": 2, \""}'),
        ("text/xml", "<r><t>{title}</t></r>", "</t><a/><t>", "<r><t>&lt;/t&gt;&lt;a/&gt;&lt;t&gt;</t></r>"),
    ],
)
def test_an_argument_stays_in_its_place_in_a_body_and_a_cookie(
    http: httpx.Client, endpoint: ScriptedHTTPServer, kind: str, body: str, title: str, sent_body: str
) -> None:
    register(http, endpoint, "title", "t", method="POST", body=body, headers={"Content-Type": kind, "Cookie": "t={t}"})
    session = open_session(http, toolgroups=["crm"])

    sent = turn(http, session, f"call: lookup {json.dumps({'title': title, 't': 'x'})}")
    refused = turn(http, session, f"call: lookup {json.dumps({'title': 'x', 't': 'x; account=theirs'})}")

    assert last_result(sent)["content"] == "done"
    [request] = endpoint.requests
    assert request.body == sent_body.encode()
    assert "the header 'Cookie' has an argument within a longer text" in last_result(refused)["content"]


def test_a_text_body_that_cannot_be_escaped_is_refused(http: httpx.Client, endpoint: ScriptedHTTPServer) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        register(http, endpoint, "title", method="POST", body="account: ours, title: {title}")

    assert refused.value.response.status_code == 400
    assert "the placeholder 'title'" in refused.value.response.json()["error"]["message"]


def test_a_server_gets_what_its_schema_permits(http: httpx.Client, endpoint: ScriptedHTTPServer) -> None:
    with ScriptedHTTPServer(answer_with([OPEN, CLOSED])) as peer:
        tools = [{"type": "mcp", "server_label": "p", "server_url": f"{peer.url}/mcp", "require_approval": "never"}]
        call = '{"q": 1, "extra": 2}'

        taken = respond(http, f"call: open {call}", tools=tools)
        refused = respond(http, f"call: closed {call}", tools=tools)

        assert calls_of(peer) == [("open", {"q": 1, "extra": 2})]
    assert item_of(taken, "mcp_call")["status"] == "completed"
    assert "'extra'" in json.dumps(item_of(refused, "mcp_call")["error"])


def test_a_model_is_told_what_the_schema_of_a_server_forbids(http: httpx.Client, endpoint: ScriptedHTTPServer) -> None:
    nested = {"name": "nested", "inputSchema": {"type": "object", "properties": {"o": CLOSED["inputSchema"]}}}
    with ScriptedHTTPServer(answer_with([nested])) as peer:
        tools = [{"type": "mcp", "server_label": "p", "server_url": f"{peer.url}/mcp", "require_approval": "never"}]

        taken = respond(http, 'call: nested {"o": {"q": 1}}', tools=tools)
        refused = respond(http, 'call: nested {"o": {"q": 1, "extra": 2}}', tools=tools)

        assert calls_of(peer) == [("nested", {"o": {"q": 1}})]
    assert item_of(taken, "mcp_call")["status"] == "completed"
    assert "at $.o: it does not satisfy additionalProperties false" in json.dumps(item_of(refused, "mcp_call")["error"])
