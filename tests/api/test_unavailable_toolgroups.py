"""Toolgroups whose MCP server refuses the caller or the protocol, in lists of tools."""

import json
from collections.abc import Iterator

import httpx
import pytest
from llama_stack_client import AuthenticationError, LlamaStackClient
from tests.api.api_client import assert_error, open_session, say
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import post
from tests.servers.mcp_replies import answer_with, reply
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.mcp.provider import McpTools

KEY = "abcdefgh-12345678"
TOKEN = "sk-callers-token-98765"


def answer(received: Received) -> Reply:
    """Answer as one of five servers: four that refuse, and one that works."""
    if received.path.startswith("/closed"):
        return Reply(status=401)
    if received.path.startswith("/new"):
        told = f"Unsupported version; you sent {received.path} and {received.headers.get('authorization')}"
        if received.path.startswith("/newest"):
            return Reply((told.encode(),), 400, {"Content-Type": "text/plain"})
        status = 500 if received.path.startswith("/newer") else 400
        return reply({"jsonrpc": "2.0", "id": None, "error": {"code": -32004, "message": told}}, status)
    return answer_with(["add"])(received)


@pytest.fixture
def peer(app_fixture: AppFixture, http: httpx.Client) -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(answer) as server:
        app_fixture.tool_providers = {"model-context-protocol": McpTools(Guard(["127.0.0.1"]))}
        for name, path in (("closed", f"/closed?key={KEY}"), ("new", f"/new?key={KEY}"), ("well", "/well")):
            body = {
                "toolgroup_id": f"mcp::{name}",
                "provider_id": "model-context-protocol",
                "mcp_endpoint": {"uri": f"{server.url}{path}"},
            }
            http.post("/v1/toolgroups", json=body).raise_for_status()
        yield server
    app_fixture.tool_providers = None


@pytest.fixture
def headers(peer: ScriptedHTTPServer) -> dict[str, str]:
    places = {f"{peer.url}/new?key={KEY}": {"Authorization": f"Bearer {TOKEN}"}}
    return {"X-LlamaStack-Provider-Data": json.dumps({"mcp_headers": places})}


@pytest.mark.parametrize("path", ["/v1/tools", "/v1/tool-runtime/list-tools"])
def test_a_list_of_all_tools_says_which_toolgroups_are_unavailable_and_why(
    http: httpx.Client, peer: ScriptedHTTPServer, headers: dict[str, str], path: str
) -> None:
    listed = http.get(path, headers=headers)

    body = listed.json()
    assert [tool["identifier"] for tool in body["data"]] == ["knowledge_search", "add"]
    reasons = {each["toolgroup_id"]: each["reason"] for each in body["unavailable"]}
    assert [name for name in reasons if name.startswith("mcp")] == ["mcp::closed", "mcp::new"]
    assert "refuses the credentials (401 Unauthorized)" in reasons["mcp::closed"]
    assert "Unsupported version" in reasons["mcp::new"]
    assert KEY not in listed.text
    assert TOKEN not in listed.text


@pytest.mark.parametrize("path", ["/v1/tools?toolgroup_id=", "/v1/tool-runtime/list-tools?tool_group_id="])
def test_a_list_of_one_toolgroup_fails_as_its_server_does(
    http: httpx.Client, peer: ScriptedHTTPServer, headers: dict[str, str], path: str
) -> None:
    closed, new = http.get(f"{path}mcp::closed", headers=headers), http.get(f"{path}mcp::new", headers=headers)

    assert_error(closed, 401, "tool_unauthorized")
    assert "speaks the revisions 2024-11-05" in assert_error(new, 400, "mcp_server_refused")["message"]
    assert KEY not in closed.text + new.text
    assert TOKEN not in new.text
    assert http.get(f"{path}mcp::well").json().keys() == {"data"}


def test_the_client_gets_an_authentication_error(client: LlamaStackClient, peer: ScriptedHTTPServer) -> None:
    with pytest.raises(AuthenticationError):
        client.tools.list(toolgroup_id="mcp::closed")
    assert [tool.identifier for tool in client.tools.list()] == ["knowledge_search", "add"]


def test_a_list_without_unavailable_toolgroups_says_so(http: httpx.Client) -> None:
    assert http.get("/v1/tools").json()["unavailable"] == []


def test_runs_are_refused_with_the_reason_of_the_server(http: httpx.Client, peer: ScriptedHTTPServer) -> None:
    session = open_session(http, toolgroups=["mcp::new"])
    tool = {"type": "mcp", "server_label": "new", "server_url": f"{peer.url}/new"}

    turn = assert_error(say(http, session, "hi"), 400, "mcp_server_refused")
    response = post(http, "hi", tools=[tool])
    invoked = http.post("/v1/tool-runtime/invoke", json={"tool_name": "mcp::new/add", "kwargs": {}})

    assert turn["param"] == "toolgroups"
    assert (response.status_code, response.json()["error"]["param"]) == (400, "tools[0].server_url")
    assert_error(invoked, 400, "mcp_server_refused")


@pytest.mark.parametrize("path", ["/newer", "/newest"])
def test_a_refusal_in_any_form_is_told_without_credentials(
    http: httpx.Client, peer: ScriptedHTTPServer, path: str
) -> None:
    url = f"{peer.url}{path}?key={KEY}"
    tool = {"type": "mcp", "server_label": "new", "server_url": url, "authorization": TOKEN}

    refused = post(http, "hi", tools=[tool])

    error = assert_error(refused, 400, "mcp_server_refused")
    assert f"Unsupported version; you sent {path}?key=*** and Bearer ***" in error["message"]
