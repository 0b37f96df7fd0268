"""Markers in the secrets of vaults, of sessions' MCP servers and of webhook endpoints, and a search for all of them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.api.leaks import leaks
from tests.security.attacks import Record
from tests.security.secret_search import Search, look_for
from tests.security.stack import Stack
from tests.security.tricks import PUBLIC
from tests.servers import echo
from tests.servers.oauth import CLIENT, OAuthServer
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

MARKS = {
    name: f"mk{number:02d}/unlikely+{name}-Xv7{number:02d}"
    for number, name in enumerate(
        (
            *("bearer", "rotated", "access", "refresh", "client_secret", "renewed"),
            *("authorization", "header", "query"),
        )
    )
}
CALLED = {"bearer", "rotated", "renewed", "authorization", "header", "query"}
"""Markers that the servers of the tools need."""

BETA = {"openai-beta": "agents=v1"}
EVENTS = ["agent.session.turn.completed", "agent.session.turn.failed", "response.completed"]
TEA, FAIL = 'call: echo {"q": "tea"}', 'call: echo {"q": "fail"}'


@pytest.fixture
def tools() -> Iterator[ScriptedHTTPServer]:
    """Yield a server whose tools repeat all that they get, and which receives webhooks, too."""

    def answer(received: Received) -> Reply:
        return echo.endpoint(received) if received.path == "/hook" else echo.mcp(received)

    with ScriptedHTTPServer(answer) as server:
        yield server


@pytest.fixture
def oauth() -> Iterator[OAuthServer]:
    with OAuthServer(MARKS["refresh"], MARKS["renewed"]) as server:
        yield server


def send_vault(http: httpx.Client, search: Search, url: str, oauth: OAuthServer) -> str:
    """Create a vault with a bearer token, which is rotated, and with tokens of OAuth. Return its id."""
    vault = search(http.post("/v1/vaults", json={"name": "Ann"})).json()["id"]
    bearer = {"type": "static_bearer", "token": MARKS["bearer"], "mcp_server_url": f"{url}/bearer/mcp"}
    client = {"type": "client_secret_post", "client_secret": MARKS["client_secret"]}
    refresh = {
        "client_id": CLIENT,
        "refresh_token": MARKS["refresh"],
        "token_endpoint": oauth.url.replace("127.0.0.1", PUBLIC),
        "token_endpoint_auth": client,
    }
    tokens: dict[str, Any] = {
        "type": "mcp_oauth",
        "access_token": MARKS["access"],
        "mcp_server_url": f"{url}/oauth/mcp",
    }
    tokens |= {"refresh": refresh, "expires_at": datetime.fromtimestamp(time.time() + 30, UTC).isoformat()}
    for auth in (bearer, tokens):
        made = search(http.post(f"/v1/vaults/{vault}/credentials", json={"name": "a", "auth": auth}))
        assert made.status_code == 200, made.text
    return str(vault)


def rotate_bearer(http: httpx.Client, search: Search, vault: str) -> None:
    path = f"/v1/vaults/{vault}/credentials"
    [bearer] = [each["id"] for each in search(http.get(path)).json()["data"] if each["auth"]["type"] == "static_bearer"]
    rotated = {"auth": {"type": "static_bearer", "token": MARKS["rotated"]}}
    assert search(http.post(f"{path}/{bearer}", json=rotated)).status_code == 200
    search(http.get(f"{path}/{bearer}"))


def send_session(http: httpx.Client, search: Search, url: str, said: str = TEA, **transport: Any) -> None:
    """Run a turn of a new session that calls an MCP server, and read all there is to read of it."""
    vaults = transport.pop("vault_ids", [])
    tool = {"type": "mcp", "server_label": "peer", "required": True}
    tool["transport"] = {"type": "http", "server_url": url, **transport}
    body: dict[str, Any] = {"environment": {"type": "none"}, "input": said, "vault_ids": vaults, "stream": True}
    agent = {"model": "scripted/demo", "tools": [tool]}
    streamed = search(http.post("/v1/agents/sessions", json=body | {"agent": agent}, headers=BETA))
    assert streamed.status_code == 200, streamed.text
    [session] = search(http.get("/v1/agents/sessions", params={"limit": 1}, headers=BETA)).json()["data"]
    for part in ("", "/items", "/turns", "/traces"):
        search(http.get(f"/v1/agents/sessions/{session['id']}{part}", headers=BETA))


def create_endpoint(http: httpx.Client, search: Search, url: str) -> dict[str, str]:
    """Create an endpoint, rotate its secret, and return both secrets, without which the answers are noted."""
    path, body = "/v1/webhook_endpoints", {"name": "n", "url": f"{url}/hook", "event_types": EVENTS}
    made = http.post(path, json=body).json()
    rotated = http.post(f"{path}/{made['id']}/rotate_secret", json={"keep_old_secret_active_for_24_hours": True}).json()
    for each in (path, f"{path}/{made['id']}"):
        search(http.get(each))
    test = search(http.post(f"{path}/{made['id']}/test", json={"event_type": EVENTS[0]}))
    assert test.status_code == 200, test.text
    return {name: each["signing_secret"].removeprefix("whsec_") for name, each in (("old", made), ("new", rotated))}


def test_no_secret_of_vaults_servers_and_endpoints_is_found_afterwards(
    stack: Stack, search: Search, tools: ScriptedHTTPServer, oauth: OAuthServer, record_property: Record
) -> None:
    url = tools.url.replace("127.0.0.1", PUBLIC)
    with stack.client(stack.create_key("marked-vaults").key) as http:
        signing = create_endpoint(http, search, url)
        vault = send_vault(http, search, url, oauth)
        for said in (TEA, FAIL):
            for server in ("bearer", "oauth"):
                send_session(http, search, f"{url}/{server}/mcp", said, vault_ids=[vault])
            rotate_bearer(http, search, vault)
        given: dict[str, Any] = {"authorization": MARKS["authorization"], "headers": {"X-Api-Key": MARKS["header"]}}
        for path in ("mcp", "fail/mcp", "deny/mcp"):
            send_session(http, search, f"{url}/{path}?key={MARKS['query'].replace('+', '%2B')}", **given)
        search.run_in_background(http, input="Hello")

        look_for({**MARKS, **signing, "refreshed": "refresh-token-1"}, search).record(record_property)
    assert {form["refresh_token"] for form in oauth.forms} == {MARKS["refresh"]}
    sent = {name for name, mark in MARKS.items() if any(leaks(echo.repeat(each), mark) for each in tools.requests)}
    assert sent == CALLED
    assert {"/hook"} <= {each.path for each in tools.requests}
