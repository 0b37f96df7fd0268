"""The MCP server: revisions, lists of tools, and calls."""

import json
import re
from typing import Any

import httpx
import pytest
from tests.api.api_client import create_agent
from tests.api.mcp_client import (
    LEGACY,
    META,
    MODERN,
    call,
    error_of,
    legacy,
    messages_of,
    modern,
    post,
    send,
    tool_of,
)


def test_discover_names_the_revisions(http: httpx.Client) -> None:
    result = send(http, modern("server/discover"))
    assert result["supportedVersions"][:2] == [MODERN, LEGACY]
    assert result["capabilities"] == {"tools": {}}
    assert (result["resultType"], result["cacheScope"]) == ("complete", "private")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "stint"


def test_initialize_opens_no_session(http: httpx.Client) -> None:
    response = post(http, legacy("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo={}))
    assert "mcp-session-id" not in response.headers
    result = messages_of(response)[0]["result"]
    assert (result["protocolVersion"], result["serverInfo"]["name"]) == (LEGACY, "stint")
    assert "resultType" not in result
    body = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert (post(http, body).status_code, post(http, body).content) == (202, b"")


@pytest.mark.parametrize("asked", ["2024-11-05", "2099-01-01", MODERN, 7, None])
def test_initialize_offers_the_older_revision(http: httpx.Client, asked: Any) -> None:
    assert send(http, legacy("initialize", protocolVersion=asked))["protocolVersion"] == LEGACY


def test_both_revisions_answer_pings(http: httpx.Client) -> None:
    assert send(http, legacy("ping")) == {}
    assert send(http, modern("ping"))["resultType"] == "complete"


def test_each_agent_is_a_tool(http: httpx.Client) -> None:
    first = create_agent(http, name="Weather réporter!", instructions="SECRET", metadata={"description": "Tells it."})
    second = create_agent(http, name="Weather réporter!", instructions="SECRET")
    third = create_agent(http, instructions="SECRET")
    tools = send(http, modern("tools/list"))["tools"]
    assert len({tool["name"] for tool in tools}) == 3
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", tool["name"]) for tool in tools)
    assert [tool["name"][:-23] for tool in tools] == ["Weather_reporter", "Weather_reporter", "agent"]
    assert [tool.get("title") for tool in tools] == ["Weather réporter!"] * 2 + [None]
    assert tools[0]["description"] == "Tells it."
    assert "SECRET" not in json.dumps(tools)
    assert [tool_of(http, agent) for agent in (first, second, third)] == [tool["name"] for tool in tools]


def test_tools_come_in_pages(http: httpx.Client) -> None:
    agents = [create_agent(http, name=f"a{number}") for number in range(53)]
    page = send(http, modern("tools/list"))
    rest = send(http, legacy("tools/list", cursor=page["nextCursor"]))
    assert "nextCursor" not in rest
    assert [tool["title"] for tool in [*page["tools"], *rest["tools"]]] == [f"a{number}" for number in range(53)]
    assert len(agents) == 53


@pytest.mark.parametrize("cursor", ["", "x", "A" * 21, "_" * 22, "../", "é", "A" * 65, 3, {}])
def test_another_cursor_is_refused(http: httpx.Client, cursor: Any) -> None:
    response = post(http, modern("tools/list", cursor=cursor))
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)


def test_a_call_is_a_turn(http: httpx.Client) -> None:
    name = tool_of(http, create_agent(http, name="echo"))
    result = send(http, call(name, "Hello there"))
    assert result["content"][0]["type"] == "text"
    assert "Hello there" in result["content"][0]["text"]
    assert (result["isError"], result["resultType"]) == (False, "complete")
    assert set(result["structuredContent"]) == {"session_id", "turn_id", "usage"}
    assert result["structuredContent"]["usage"]["total_tokens"] > 0


def test_a_session_goes_on_in_both_revisions(http: httpx.Client) -> None:
    agent = create_agent(http, name="echo")
    name = tool_of(http, agent)
    first = send(http, call(name, "One"))["structuredContent"]
    arguments = {"message": "Two", "session_id": first["session_id"]}
    second = send(http, legacy("tools/call", 9, name=name, arguments=arguments))["structuredContent"]
    assert second["session_id"] == first["session_id"]
    turns = http.get(f"/v1/agents/{agent}/session/{first['session_id']}").json()["turns"]
    assert [turn["turn_id"] for turn in turns] == [first["turn_id"], second["turn_id"]]


def test_progress_is_streamed_to_who_asks(http: httpx.Client) -> None:
    name = tool_of(http, create_agent(http))
    accept = "application/json, text/event-stream"
    quiet = messages_of(post(http, call(name, "Hi"), accept=accept))
    assert [message["id"] for message in quiet] == [1]
    heard = messages_of(post(http, call(name, "Hi", meta={"progressToken": "p"}), accept=accept))
    progress = [message["params"] for message in heard[:-1]]
    assert progress
    assert {each["progressToken"] for each in progress} == {"p"}
    assert [each["progress"] for each in progress] == list(range(1, len(progress) + 1))
    assert heard[-1]["result"]["structuredContent"]["turn_id"]


@pytest.mark.parametrize("message", ["fail: before", "fail: after 3 words", "fail: context"])
def test_a_turn_that_fails_is_a_result(http: httpx.Client, message: str) -> None:
    name = tool_of(http, create_agent(http))
    for accept in ("application/json", "text/event-stream"):
        result = send(http, call(name, message), accept=accept)
        assert result["isError"]
        assert result["structuredContent"]["turn_id"]
        assert "failed" in result["content"][0]["text"] or "context" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        None,
        {"message": ""},
        {"message": 1},
        {"message": "Hi", "extra": 1},
        {"message": "Hi", "session_id": "1"},
        [],
    ],
)
def test_bad_arguments_are_errors_of_the_protocol(http: httpx.Client, arguments: Any) -> None:
    name = tool_of(http, create_agent(http))
    response = post(http, modern("tools/call", name=name, arguments=arguments))
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)
    assert error_of(response)["data"]["param"].startswith("params.arguments")


def test_an_unknown_tool_is_an_error_of_the_protocol(http: httpx.Client) -> None:
    name = tool_of(http, create_agent(http, name="echo"))
    for wrong in (f"other{name[4:]}", name[:-1] + "#", f"echo_{'A' * 22}", "", "x" * 128):
        response = post(http, call(wrong, "Hi"))
        assert (response.status_code, error_of(response)["code"]) == (400, -32602)
        assert error_of(response)["data"]["code"] == "unknown_tool"
        old = post(http, legacy("tools/call", name=wrong, arguments={"message": "Hi"}))
        assert (old.status_code, error_of(old)["code"]) == (200, -32602)


def test_an_unknown_session_is_an_error_of_the_protocol(http: httpx.Client) -> None:
    name = tool_of(http, create_agent(http))
    other = send(http, call(tool_of(http, create_agent(http)), "Hi"))["structuredContent"]["session_id"]
    response = post(http, call(name, "Hi", arguments={"session_id": other}))
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)
    assert error_of(response)["data"]["code"] == "session_not_found"


def test_the_endpoint_of_an_agent_has_no_other(http: httpx.Client) -> None:
    first, second = create_agent(http), create_agent(http)
    response = post(http, call(tool_of(http, second), "Hi"), f"/v1/agents/{first}/mcp")
    assert error_of(response)["data"]["code"] == "unknown_tool"
    missing = f"{first[:-4]}0000"
    for body in (modern("tools/list"), legacy("ping"), modern("server/discover")):
        response = post(http, body, f"/v1/agents/{missing}/mcp")
        assert (response.status_code, error_of(response)["data"]["code"]) == (404, "agent_not_found")


def test_a_renamed_agent_has_its_new_name_only(http: httpx.Client) -> None:
    agent = create_agent(http, name="old")
    name = tool_of(http, agent)
    beta = {"openai-beta": "agents=v1"}
    changed = http.post(f"/v1/agents/{agent}", json={"name": "new"}, headers=beta)
    assert changed.status_code == 200, changed.text
    error = error_of(post(http, call(name, "Hi")))
    assert tool_of(http, agent) in error["message"]
    assert send(http, call(tool_of(http, agent), "Hi"))["content"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"mcp-protocol-version": "2025-11-25"}, -32020),
        ({"mcp-protocol-version": "2020-01-01"}, -32020),
        ({"mcp-method": "tools/list"}, -32020),
        ({"mcp-method": ""}, -32020),
        ({"mcp-name": "other"}, -32020),
        ({"mcp-name": "=?base64?b3RoZXI=?="}, -32020),
        ({"mcp-name": "=?base64?###?="}, -32020),
    ],
)
def test_headers_agree_with_the_body(http: httpx.Client, changed: dict[str, str], code: int) -> None:
    name = tool_of(http, create_agent(http))
    response = post(http, call(name, "Hi"), **{key.replace("-", "_"): value for key, value in changed.items()})
    assert (response.status_code, error_of(response)["code"]) == (400, code)


@pytest.mark.parametrize("missing", ["mcp-protocol-version", "mcp-method", "mcp-name"])
def test_no_header_may_be_missing(http: httpx.Client, missing: str) -> None:
    body = call(tool_of(http, create_agent(http)), "Hi")
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": body["params"]["name"]}
    del headers[missing]
    response = http.post("/v1/mcp", json=body, headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (400, -32020)


def test_no_header_may_be_sent_twice(http: httpx.Client) -> None:
    headers = [("mcp-protocol-version", MODERN), ("mcp-method", "ping"), ("mcp-method", "ping")]
    response = http.post("/v1/mcp", json=modern("ping"), headers=headers)
    assert (response.status_code, error_of(response)["code"]) == (400, -32020)


def test_an_unsupported_version_gets_the_supported_ones(http: httpx.Client) -> None:
    version = "2099-01-01"
    key = "io.modelcontextprotocol/protocolVersion"
    for body in (legacy("ping"), modern("ping", meta={key: version})):
        response = post(http, body, mcp_protocol_version=version)
        error = error_of(response)
        assert (response.status_code, error["code"]) == (400, -32022)
        assert error["data"]["requested"] == version
        assert error["data"]["supported"][:2] == [MODERN, LEGACY]


@pytest.mark.parametrize("key", [key for key in META if not key.endswith("clientInfo")])
def test_each_request_has_version_and_capabilities(http: httpx.Client, key: str) -> None:
    body = modern("ping")
    body["params"]["_meta"] = {name: value for name, value in META.items() if name != key}
    response = http.post("/v1/mcp", json=body, headers={"mcp-protocol-version": MODERN, "mcp-method": "ping"})
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)


def test_unknown_methods_are_refused(http: httpx.Client) -> None:
    response = post(http, modern("resources/list"))
    assert (response.status_code, error_of(response)["code"]) == (404, -32601)
    response = post(http, legacy("server/discover"))
    assert (response.status_code, error_of(response)["code"]) == (200, -32601)
    assert post(http, modern("initialize")).status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 150 + b"]" * 150 + b"}", -32700),
    ],
)
def test_malformed_messages_are_refused(http: httpx.Client, body: bytes, code: int) -> None:
    response = http.post("/v1/mcp", content=body, headers={"content-type": "application/json"})
    assert error_of(response)["code"] == code
    assert response.status_code in (200, 400)


def test_a_null_id_is_a_bad_request(http: httpx.Client) -> None:
    assert post(http, modern("ping", None)).status_code == 400


def test_there_is_no_stream_and_no_session_to_end(http: httpx.Client) -> None:
    agent = create_agent(http)
    for path in ("/v1/mcp", f"/v1/agents/{agent}/mcp"):
        for method in ("GET", "DELETE", "PUT"):
            response = http.request(method, path, headers={"accept": "text/event-stream"})
            assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_replies_and_notifications_are_accepted(http: httpx.Client) -> None:
    assert http.post("/v1/mcp", json={"jsonrpc": "2.0", "id": 1, "result": {}}).status_code == 202
    for version in (MODERN, LEGACY):
        body = {"jsonrpc": "2.0", "method": "notifications/anything"}
        assert http.post("/v1/mcp", json=body, headers={"mcp-protocol-version": version}).status_code == 202
