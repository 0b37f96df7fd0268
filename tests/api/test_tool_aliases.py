"""Tools of MCP servers that have the names of built-in tools, or their aliases."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import open_session, turn
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import WEATHER, Body, respond, text_of, types_of
from tests.servers import tavily
from tests.servers.mcp_replies import answer_with, calls_of
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.mcp.provider import McpTools
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

NAMES = ("brave_search", "file_search", "web_search", "knowledge_search", "Delete", "delete")


@pytest.fixture(scope="module")
def shared_peers() -> Iterator[tuple[ScriptedHTTPServer, ScriptedHTTPServer]]:
    with ScriptedHTTPServer(answer_with(NAMES)) as peer, ScriptedHTTPServer(tavily.answer) as engine:
        yield peer, engine


@pytest.fixture
def peer(
    shared_peers: tuple[ScriptedHTTPServer, ScriptedHTTPServer], app_fixture: AppFixture
) -> Iterator[ScriptedHTTPServer]:
    peer, engine = shared_peers
    peer.forget()
    guard = Guard(["127.0.0.1"])
    search = WebSearch(Tavily(guard, base_url=engine.url), tavily.KEY)
    app_fixture.tool_providers = {"model-context-protocol": McpTools(guard), "tavily-search": search}
    yield peer
    app_fixture.tool_providers = None


def server_of(peer: ScriptedHTTPServer, *names: str, **fields: Any) -> Body:
    return {
        "type": "mcp",
        "server_label": "peer",
        "server_url": f"{peer.url}/mcp",
        "allowed_tools": [*names],
        **fields,
    }


@pytest.mark.parametrize(
    ("tool", "called"),
    [
        ("brave_search", "web_search"),
        ("file_search", "knowledge_search"),
        ("web_search", "brave_search"),
        ("Delete", "delete"),
    ],
)
@pytest.mark.parametrize("approval", ["always", "never"])
def test_no_other_name_calls_a_tool_of_an_mcp_server(
    http: httpx.Client, peer: ScriptedHTTPServer, tool: str, called: str, approval: str
) -> None:
    tools = [server_of(peer, tool, require_approval=approval)]

    response = respond(http, f'call: {called} {{"query": "x"}}', tools=tools)

    assert calls_of(peer) == []
    assert types_of(response) == ["mcp_list_tools", "message"]
    assert f"There is no tool named '{called}'" in text_of(response)


@pytest.mark.parametrize("name", NAMES)
def test_a_call_by_the_name_itself_waits_for_approval(http: httpx.Client, peer: ScriptedHTTPServer, name: str) -> None:
    response = respond(http, f"call: {name} {{}}", tools=[server_of(peer, name, require_approval="always")])

    assert types_of(response)[-1] == "mcp_approval_request"
    assert response["output"][-1]["name"] == name
    assert calls_of(peer) == []


def test_a_function_is_called_by_its_own_name_only(http: httpx.Client, peer: ScriptedHTTPServer) -> None:
    functions = [WEATHER | {"name": "file_search"}, WEATHER | {"name": "brave_search"}]

    response = respond(http, "call: knowledge_search {}\ncall: web_search {}", tools=functions)

    assert types_of(response) == ["message"]


def test_a_server_beside_the_web_search_keeps_its_approval(http: httpx.Client, peer: ScriptedHTTPServer) -> None:
    tools = [{"type": "web_search"}, server_of(peer, "brave_search", require_approval="always")]

    searched = respond(http, 'call: web_search {"query": "tea"}', tools=tools)
    asked = respond(http, 'call: brave_search {"query": "tea"}', tools=tools)

    assert types_of(searched) == ["mcp_list_tools", "web_search_call", "message"]
    assert types_of(asked) == ["mcp_list_tools", "mcp_approval_request"]
    assert calls_of(peer) == []


def test_an_agents_search_is_called_by_either_name_and_shown_by_one(
    http: httpx.Client, peer: ScriptedHTTPServer
) -> None:
    session = open_session(http, toolgroups=["builtin::websearch"])

    steps = [
        turn(http, session, f'call: {name} {{"query": "tea"}}')["steps"] for name in ("web_search", "brave_search")
    ]

    assert [each[0]["model_response"]["tool_calls"][0]["tool_name"] for each in steps] == ["brave_search"] * 2
    assert [each[1]["tool_responses"][0]["tool_name"] for each in steps] == ["brave_search"] * 2
    assert all("About tea" in str(each[1]["tool_responses"][0]["content"]) for each in steps)


def test_an_agents_mcp_tool_is_not_called_by_an_alias(http: httpx.Client, peer: ScriptedHTTPServer) -> None:
    body = {
        "toolgroup_id": "mcp::p",
        "provider_id": "model-context-protocol",
        "mcp_endpoint": {"uri": f"{peer.url}/mcp"},
    }
    assert http.post("/v1/toolgroups", json=body).status_code == 200
    session = open_session(http, toolgroups=["mcp::p/brave_search", "mcp::p/file_search"])

    steps = [turn(http, session, f"call: {name} {{}}")["steps"] for name in ("web_search", "knowledge_search")]

    assert all("There is no tool named" in each[1]["tool_responses"][0]["content"] for each in steps)
    assert calls_of(peer) == []


@pytest.mark.parametrize("names", [("web_search", "brave_search"), ("brave_search", "web_search")])
def test_shields_of_a_tool_under_both_names_are_merged(
    http: httpx.Client, peer: ScriptedHTTPServer, names: tuple[str, str]
) -> None:
    for shield, word in (("no-tea", "tea"), ("no-page", "Page 1")):
        body = {"shield_id": shield, "provider_id": "deny-list", "params": {"phrases": [word]}}
        http.post("/v1/shields", json=body).raise_for_status()
    shields = {names[0]: {"input_shields": ["no-tea"]}, names[1]: {"output_shields": ["no-page"]}}
    session = open_session(http, toolgroups=["builtin::websearch"], tool_shields=shields)

    asked, found = [
        str(turn(http, session, f'call: web_search {{"query": "{query}"}}')["steps"]) for query in ("tea", "coffee")
    ]

    assert "A shield blocked the arguments of this call" in asked
    assert "A shield blocked the result of this call" in found


def test_a_client_tool_with_the_name_of_an_alias_is_the_one_that_is_called(
    http: httpx.Client, peer: ScriptedHTTPServer
) -> None:
    own = {"name": "web_search", "description": "", "parameters": []}
    session = open_session(http, toolgroups=["builtin::websearch"], client_tools=[own])

    steps = turn(http, session, 'call: web_search {"query": "tea"}')["steps"]

    assert [each["step_type"] for each in steps] == ["inference"]
    assert steps[0]["model_response"]["tool_calls"][0]["tool_name"] == "web_search"


def test_a_server_tool_with_the_name_of_an_alias_is_the_one_that_is_called(
    http: httpx.Client, peer: ScriptedHTTPServer
) -> None:
    register(http, peer, "mcp::p")
    session = open_session(http, toolgroups=["builtin::websearch", "mcp::p/web_search"])

    turn(http, session, 'call: web_search {"query": "tea"}')

    assert calls_of(peer) == [("web_search", {"query": "tea"})]


@pytest.mark.parametrize("arguments", ["[1]", '"x"', '{"query": '])
def test_a_call_whose_arguments_are_no_object_needs_no_approval_and_does_not_run(
    http: httpx.Client, peer: ScriptedHTTPServer, arguments: str
) -> None:
    response = respond(http, f"call: delete {arguments}", tools=[server_of(peer, "delete", require_approval="always")])

    assert types_of(response) == ["mcp_list_tools", "mcp_call", "message"]
    assert "are not a JSON object" in str(response["output"][1]["error"])
    assert calls_of(peer) == []


def register(http: httpx.Client, peer: ScriptedHTTPServer, name: str) -> None:
    endpoint = {"uri": f"{peer.url}/mcp"}
    body = {"toolgroup_id": name, "provider_id": "model-context-protocol", "mcp_endpoint": endpoint}
    http.post("/v1/toolgroups", json=body).raise_for_status()
    http.get("/v1/tools", params={"toolgroup_id": name}).raise_for_status()  # from now on, the list is cached


@pytest.mark.parametrize(
    ("name", "found"), [("web_search", "About tea"), ("brave_search", "About tea"), ("knowledge_search", "vector DB")]
)
def test_a_built_in_tool_comes_before_those_of_a_server(
    http: httpx.Client, peer: ScriptedHTTPServer, name: str, found: str
) -> None:
    register(http, peer, "mcp::p")
    register(http, peer, "mcp::q")
    invoke = "/v1/tool-runtime/invoke"

    built_in = http.post(invoke, json={"tool_name": name, "kwargs": {"query": "tea"}})
    named = http.post(invoke, json={"tool_name": f"mcp::p/{name}", "kwargs": {"query": "tea"}})
    several = http.post(invoke, json={"tool_name": "Delete", "kwargs": {}})

    assert found in built_in.text
    assert http.get(f"/v1/tools/{name}").json()["toolgroup_id"].startswith("builtin::")
    assert calls_of(peer) == [(name, {"query": "tea"})]
    assert named.status_code == 200
    assert several.json()["error"]["code"] == "ambiguous_tool"
