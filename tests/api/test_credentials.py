"""Credentials go where they are needed, and nowhere else: not into answers, logs, streams or the table."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error, create_agent, create_session, open_session, say
from tests.api.app_fixture import AppFixture
from tests.api.leaks import Watcher, leaks
from tests.api.responses_client import item_of
from tests.servers import echo
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.mcp.provider import McpTools

KEY = "zq8/unlikely+key-42"
OTHER = "Vw7unlikelyPathKey9"
HTTP, MCP = "remote-execution", "model-context-protocol"
LOGIN = base64.b64encode(f"ann:{KEY}".encode()).decode()
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


@pytest.fixture
def endpoint() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(echo.endpoint) as server:
        yield server


@pytest.fixture
def server_of_tools() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(echo.mcp) as server:
        yield server


@pytest.fixture
def watch(app_fixture: AppFixture, http: httpx.Client) -> Iterator[Watcher]:
    guard = Guard(["127.0.0.1"])
    app_fixture.tool_providers = {HTTP: HttpEndpoints(guard), MCP: McpTools(guard)}
    app_fixture.made.clear()
    with Watcher(app_fixture) as watcher:
        yield watcher
    app_fixture.tool_providers = None
    app_fixture.made.clear()


DEFINITIONS: dict[str, dict[str, Any]] = {
    "a header": {"headers": {"X-Api-Key": KEY}},
    "basic authentication": {"headers": {"Authorization": f"Basic {LOGIN}"}},
    "the query": {"url": "?api_key=zq8%2Funlikely%2Bkey-42&q={q}"},
    "the path": {"url": f"token/{OTHER}/{{q}}"},
    "the body": {"method": "POST", "body": {"auth": {"key": KEY}, "q": "{q}"}},
}


def register(http: httpx.Client, base: str, **definition: Any) -> httpx.Response:
    tool = {"name": "echo", "parameters": SCHEMA} | definition | {"url": f"{base}{definition.get('url', '')}"}
    body = {"toolgroup_id": "peer", "provider_id": HTTP, "args": {"tools": [tool]}}
    return http.post("/v1/toolgroups", json=body)


def use(http: httpx.Client, watch: Watcher, session: str, **request: Any) -> None:
    """Let a turn call the tool, streamed and not, and read all there is to read of it."""
    for stream in (True, False):
        answer = watch(say(http, session, 'call: echo {"q": "tea"}', stream=stream, **request))
        assert answer.status_code == 200, answer.text
    found = watch(http.get(session)).json()
    for turn in found["turns"]:
        watch(http.get(f"{session}/turn/{turn['turn_id']}"))
        for step in turn["steps"]:
            watch(http.get(f"{session}/turn/{turn['turn_id']}/step/{step['step_id']}"))
    assert (
        len([step for turn in found["turns"] for step in turn["steps"] if step["step_type"] == "tool_execution"]) == 2
    )


@pytest.mark.parametrize(
    ("place", "path"),
    [
        *((place, "/ok/") for place in DEFINITIONS),
        *(("a header", path) for path in ("/file/", "/fail/", "/moved/")),
    ],
)
def test_an_endpoint_that_repeats_the_registrations_key_tells_nobody(
    http: httpx.Client, watch: Watcher, endpoint: ScriptedHTTPServer, place: str, path: str
) -> None:
    registered = watch(register(http, endpoint.url + path, **DEFINITIONS[place]))
    assert registered.status_code == 200, registered.text

    use(http, watch, open_session(http, toolgroups=["peer"]))
    watch(http.post("/v1/tool-runtime/invoke", json={"tool_name": "echo", "kwargs": {"q": "tea"}}))
    for listing in ("toolgroups", "toolgroups/peer", "tools", "tools/echo", "tool-runtime/list-tools"):
        watch(http.get(f"/v1/{listing}"))

    assert all(any(leaks(echo.repeat(each), key) for key in (KEY, OTHER)) for each in endpoint.requests)
    assert len(endpoint.requests) == 3
    watch.assert_clean(KEY, OTHER)


@pytest.mark.parametrize("of", ["agent", "turn"])
def test_args_of_an_agent_or_a_turn_reach_the_endpoint_and_nobody_else(
    http: httpx.Client, watch: Watcher, endpoint: ScriptedHTTPServer, of: str
) -> None:
    register(http, f"{endpoint.url}/")
    group = {"name": "peer", "args": {"api_key": KEY, "limits": {"max_tokens": 5}}}
    agent = create_agent(http, toolgroups=[group] if of == "agent" else ["peer"])

    use(http, watch, create_session(http, agent), **({"toolgroups": [group]} if of == "turn" else {}))
    shown = [watch(http.get(f"/v1/agents/{agent}")).json(), watch(http.get("/v1/agents")).json()["data"][0]]

    assert all(leaks(echo.repeat(each), KEY) for each in endpoint.requests)
    if of == "agent":
        masked = {"api_key": "********", "limits": {"max_tokens": 5}}
        assert [each["agent_config"]["toolgroups"][0]["args"] for each in shown] == [masked, masked]
    watch.assert_clean(KEY, stores=of == "turn")


def test_an_mcp_server_that_repeats_the_callers_key_tells_nobody(
    http: httpx.Client, watch: Watcher, server_of_tools: ScriptedHTTPServer
) -> None:
    url = f"{server_of_tools.url}/s/{OTHER}/mcp"
    http.headers["X-LlamaStack-Provider-Data"] = json.dumps({"mcp_headers": {url: {"Authorization": f"Bearer {KEY}"}}})
    body = {"toolgroup_id": "peer", "provider_id": MCP, "mcp_endpoint": {"uri": url}}
    assert watch(http.post("/v1/toolgroups", json=body)).status_code == 200

    use(http, watch, open_session(http, toolgroups=["peer"]))
    for arguments in ({"q": "tea"}, {"q": "fail"}):
        watch(http.post("/v1/tool-runtime/invoke", json={"tool_name": "echo", "kwargs": arguments}))
    for listing in ("toolgroups", "toolgroups/peer", "tools", "tools/echo"):
        assert watch(http.get(f"/v1/{listing}")).status_code == 200
    found = http.get("/v1/tools/echo").json()

    assert found["description"].startswith("For POST /")
    assert any(leaks(echo.repeat(each), KEY) for each in server_of_tools.requests)
    watch.assert_clean(KEY, OTHER)


@pytest.mark.parametrize(("path", "status"), [("/fail", 502), ("/deny", 401)])
def test_an_mcp_server_that_refuses_with_the_callers_key_in_its_words_tells_nobody(
    http: httpx.Client, watch: Watcher, server_of_tools: ScriptedHTTPServer, path: str, status: int
) -> None:
    url = f"{server_of_tools.url}{path}/{OTHER}"
    http.headers["X-LlamaStack-Provider-Data"] = json.dumps({"mcp_headers": {url: {"Authorization": f"Bearer {KEY}"}}})
    body = {"toolgroup_id": "peer", "provider_id": MCP, "mcp_endpoint": {"uri": url}}
    watch(http.post("/v1/toolgroups", json=body))

    refused = watch(say(http, open_session(http, toolgroups=["peer"]), "Hello", stream=True))
    assert watch(http.get("/v1/tools?toolgroup_id=peer")).status_code == status
    assert watch(http.get("/v1/tools/echo")).status_code in (401, 502)
    assert watch(http.get("/v1/tools")).status_code == 200

    assert refused.status_code == status
    watch.assert_clean(KEY, OTHER)


def hosted(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "mcp", "server_label": "peer", "server_url": url, "require_approval": "never"} | fields


CARRIERS: dict[str, tuple[str, dict[str, Any]]] = {
    "authorization": ("/mcp", {"authorization": KEY}),
    "headers": ("/mcp", {"headers": {"X-Api-Key": KEY}}),
    "path of letters": ("/path-secret-key/mcp", {}),
}
KEYS = (KEY, OTHER, "path-secret-key")


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_responses_mcp_server_that_repeats_its_key_tells_nobody(
    http: httpx.Client, watch: Watcher, server_of_tools: ScriptedHTTPServer, carrier: str
) -> None:
    path, fields = CARRIERS[carrier]
    tool = hosted(f"{server_of_tools.url}{path}", **fields)
    conversation = http.post("/v1/conversations").json()["id"]
    body: dict[str, Any] = {"model": "scripted/demo", "input": 'call: echo {"q": "tea"}', "tools": [tool]}

    streamed = watch(http.post("/v1/responses", json=body | {"stream": True}))
    answer = watch(http.post("/v1/responses", json=body)).json()
    watch(http.post("/v1/responses", json=body | {"conversation": conversation}))
    watch(http.post("/v1/responses", json=body | {"input": 'call: echo {"q": "fail"}'}))
    for path_ in (f"responses/{answer['id']}", "responses", f"responses/{answer['id']}/input_items"):
        assert watch(http.get(f"/v1/{path_}")).status_code == 200
    watch(http.get(f"/v1/conversations/{conversation}/items"))
    watch(http.post("/v1/responses", json=body | {"previous_response_id": answer["id"], "input": "and?"}))

    assert "response.mcp_call.completed" in streamed.text
    assert item_of(answer, "mcp_call")["output"].startswith("POST /")
    assert any(leaks(echo.repeat(each), key) for each in server_of_tools.requests for key in KEYS)
    watch.assert_clean(*KEYS)


def test_a_key_in_a_background_servers_url_is_shown_nowhere(
    http: httpx.Client, watch: Watcher, server_of_tools: ScriptedHTTPServer, app_fixture: AppFixture
) -> None:
    """It is stored for the worker."""
    tool = hosted(f"{server_of_tools.url}/{OTHER}/mcp?token={KEY.replace('/', '%2F').replace('+', '%2B')}")
    body = {"model": "scripted/demo", "input": 'call: echo {"q": "tea"}', "tools": [tool], "background": True}

    queued = watch(http.post("/v1/responses", json=body)).json()
    app_fixture.work_off()
    answer = watch(http.get(f"/v1/responses/{queued['id']}")).json()
    watch(http.get(f"/v1/responses/{queued['id']}?stream=true"))
    with app_fixture.working():
        watch(http.post("/v1/responses", json=body | {"stream": True}))
    watch(http.get("/v1/responses"))

    shown = f"{server_of_tools.url}/********/mcp?token=********"
    assert [each["tools"][0]["server_url"] for each in (queued, answer)] == [shown, shown]
    assert item_of(answer, "mcp_call")["output"].startswith("POST /***/mcp?token=***\n")
    watch.assert_clean(KEY, OTHER, stores=False)


def test_the_metadata_of_models_is_masked(http: httpx.Client, watch: Watcher) -> None:
    model = {"model_id": "own", "provider_model_id": "scripted/demo", "metadata": {"api_key": KEY, "tier": 1}}

    created = watch(http.post("/v1/models", json=model)).json()
    for path in ("models", "models/own"):
        assert watch(http.get(f"/v1/{path}")).status_code == 200

    assert created["metadata"] == {"api_key": "********", "tier": 1}
    watch.assert_clean(KEY)


MASKED: dict[str, tuple[str, dict[str, Any], str]] = {
    "an agent": (
        "/v1/agents",
        {
            "agent_config": {
                "model": "m",
                "instructions": "",
                "toolgroups": [{"name": "g", "args": {"key": "********"}}],
            }
        },
        "agent_config.toolgroups[0].args.key",
    ),
    "a toolgroup": (
        "/v1/toolgroups",
        {
            "toolgroup_id": "g",
            "provider_id": HTTP,
            "args": {"tools": [{"name": "t", "url": "https://x.example", "headers": {"X-Key": "********"}}]},
        },
        "args.tools[0].headers.X-Key",
    ),
    "an endpoint": (
        "/v1/toolgroups",
        {"toolgroup_id": "g", "provider_id": MCP, "mcp_endpoint": {"uri": "https://x.example/?key=********"}},
        "mcp_endpoint",
    ),
    "a model": (
        "/v1/models",
        {"model_id": "own", "provider_model_id": "scripted/demo", "metadata": {"api_key": "********"}},
        "metadata.api_key",
    ),
    "a response": (
        "/v1/responses",
        {"model": "scripted/demo", "input": "x", "tools": [hosted("https://x.example/********/mcp")]},
        "tools",
    ),
}


@pytest.mark.parametrize("what", MASKED)
def test_a_masked_value_that_comes_back_is_refused_so_that_it_replaces_no_credential(
    http: httpx.Client, what: str
) -> None:
    path, body, param = MASKED[what]

    refused = http.post(path, json=body)

    error = assert_error(refused, 400, refused.json()["error"]["code"])
    assert error["param"] == param
    assert "********" in error["message"]


def test_a_models_text_is_redacted_across_its_words_and_the_log_has_no_key(
    http: httpx.Client, watch: Watcher, endpoint: ScriptedHTTPServer
) -> None:
    key = "open sesame if you please"
    register(http, f"{endpoint.url}/", headers={"X-Key": key})
    session = open_session(http, toolgroups=["peer"])

    said = say(http, session, f"say: The words are {key}, my friend.", stream=True)

    deltas = "".join(
        event["event"]["payload"]["delta"]["text"]
        for event in map(json.loads, (line[6:] for line in said.text.split("\n") if line.startswith("data: ")))
        if event["event"]["payload"].get("delta", {}).get("type") == "text"
    )
    assert deltas == "The words are ***, my friend."
