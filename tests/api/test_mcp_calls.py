"""Calls of the MCP server that are cancelled, repeated, limited, or sent by web pages."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, create_agent
from tests.api.app_fixture import AppFixture, Served, wait_until
from tests.api.mcp_client import LEGACY, call, error_of, headers_of, legacy, messages_of, post, send, tool_of

from stint.caller import ModelAccess

STREAM = "application/json, text/event-stream"
KEY = "idempotency-key"
MALFORMED_METHODS: list[Any] = [["tools/call"], None, {}]


class RunningCall(threading.Thread):
    """A call whose stream another thread reads."""

    def __init__(self, http: httpx.Client, body: dict[str, Any], **headers: str) -> None:
        super().__init__(daemon=True)
        self.http, self.body, self.headers = http, body, headers_of(body) | {"accept": STREAM} | headers
        self.first, self.leave = threading.Event(), threading.Event()
        self.messages: list[Any] = []

    def run(self) -> None:
        with self.http.stream("POST", "/v1/mcp", json=self.body, headers=self.headers) as response:
            for line in response.iter_lines():
                if line.startswith("data: "):
                    self.messages.append(json.loads(line[6:]))
                    self.first.set()
                if self.leave.is_set():
                    return


def start(http: httpx.Client, body: dict[str, Any], **headers: str) -> RunningCall:
    running = RunningCall(http, body, **headers)
    running.start()
    assert running.first.wait(30)
    return running


def slow(http: httpx.Client, name: str, message_id: Any = 1, **headers: str) -> RunningCall:
    """Start a call of the older revision whose model is silent."""
    params = {"name": name, "arguments": {"message": "Hello"}, "_meta": {"progressToken": 1}}
    return start(http, legacy("tools/call", message_id, **params), **headers)


def cancel(http: httpx.Client, message_id: Any, **headers: str) -> None:
    body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message_id}}
    response = http.post("/v1/mcp", json=body, headers={"mcp-protocol-version": LEGACY} | headers)
    assert response.status_code == 202


def statuses(http: httpx.Client, agent: str) -> list[str]:
    sessions = http.get(f"/v1/agents/{agent}/sessions").json()["data"]
    paths = [f"/v1/agents/{agent}/session/{session['session_id']}" for session in sessions]
    return [turn["status"] for path in paths for turn in http.get(path).json()["turns"]]


@pytest.fixture
def silence(app_fixture: AppFixture) -> Iterator[None]:
    yield
    app_fixture.faulty.silence.set()


@pytest.mark.usefixtures("silence")
def test_a_cancelled_call_cancels_its_turn(http: httpx.Client) -> None:
    agent = create_agent(http, model="faulty/slow")
    running = slow(http, tool_of(http, agent), "a-1")
    for other in (1, "a-2"):
        cancel(http, other)
    assert statuses(http, agent) == ["in_progress"]
    cancel(http, "a-1")
    running.join(60)
    assert running.messages[-1]["result"]["isError"]
    assert statuses(http, agent) == ["cancelled"]


@pytest.mark.usefixtures("silence")
def test_the_same_id_of_another_client_cancels_nothing(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, model="faulty/slow")
    name = tool_of(http, agent)
    first, second = slow(http, name), slow(http, name)
    cancel(http, 1)
    cancel(http, 1, **{"user-agent": "another client"})
    cancel(http, 1, **{"x-stint-user": "ada"})
    cancel(http, "1")
    assert statuses(http, agent) == ["in_progress"] * 2
    app_fixture.faulty.silence.set()
    for running in (first, second):
        running.join(60)
        assert not running.messages[-1]["result"]["isError"]


@pytest.mark.usefixtures("silence")
def test_a_call_is_cancelled_whose_id_an_ended_call_had(http: httpx.Client) -> None:
    ended, agent = create_agent(http, client_tools=[WEATHER]), create_agent(http, model="faulty/slow")
    for message in ("Hello", 'call: get_weather {"city": "Rome"}'):
        send(http, legacy("tools/call", 1, name=tool_of(http, ended), arguments={"message": message}))
    running = slow(http, tool_of(http, agent), 1)
    cancel(http, 1)
    wait_until(lambda: statuses(http, agent) == ["cancelled"])
    running.join(60)
    assert sorted(statuses(http, ended)) == ["awaiting_input", "completed"]


@pytest.mark.usefixtures("silence")
def test_a_client_of_the_newer_revision_cancels_by_leaving(http: httpx.Client) -> None:
    agent = create_agent(http, model="faulty/slow")
    running = start(http, call(tool_of(http, agent), "Hello", meta={"progressToken": 1}))
    running.leave.set()
    wait_until(lambda: statuses(http, agent) == ["cancelled"])


@pytest.mark.usefixtures("silence")
def test_a_client_of_the_older_revision_may_leave(http: httpx.Client) -> None:
    agent = create_agent(http, model="faulty/slow")
    running = slow(http, tool_of(http, agent))
    running.leave.set()
    running.join(60)
    assert statuses(http, agent) == ["in_progress"]


def test_one_id_of_two_clients_runs_two_turns(http: httpx.Client) -> None:
    agent = create_agent(http)
    body = call(tool_of(http, agent), "Hello", 1)
    first, second = send(http, body), send(http, body)
    assert first["structuredContent"]["turn_id"] != second["structuredContent"]["turn_id"]
    assert len(statuses(http, agent)) == 2


@pytest.mark.parametrize("accept", ["application/json", STREAM])
def test_a_repeated_call_runs_once_by_its_key(http: httpx.Client, accept: str) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    answers = [
        post(http, call(name, "Hello", message_id, meta=meta), idempotency_key="k", accept=accept)
        for message_id, meta in ((1, {}), ("two", {"progressToken": "t"}), (1, {}))
    ]
    results = [messages_of(answer)[-1] for answer in answers]
    assert [result["id"] for result in results] == [1, "two", 1]
    assert results[0]["result"] == results[1]["result"] == results[2]["result"]
    assert statuses(http, agent) == ["completed"]


def test_a_repetition_has_its_own_token_of_progress(http: httpx.Client) -> None:
    name = tool_of(http, create_agent(http))

    def tokens(message_id: int, meta: dict[str, Any]) -> list[Any]:
        answer = post(http, call(name, "Hello", message_id, meta=meta), idempotency_key="k", accept=STREAM)
        messages = messages_of(answer)
        assert messages[-1]["id"] == message_id
        return [message["params"]["progressToken"] for message in messages[:-1]]

    first = tokens(1, {"progressToken": "a"})
    assert set(first) == {"a"}
    assert tokens(2, {"progressToken": 7}) == [7] * len(first)
    assert tokens(3, {}) == []


def test_a_key_is_of_one_call(http: httpx.Client) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    assert post(http, call(name, "Hello"), idempotency_key="k").status_code == 200
    for body in (call(name, "Other"), call(name, "Hello", meta={"stint/budget": {"max_tokens": 9}})):
        response = post(http, body, idempotency_key="k")
        assert (response.status_code, response.json()["error"]["code"]) == (422, "idempotency_key_reused")
    for body in (legacy("ping"), legacy("tools/list"), legacy("initialize", protocolVersion=LEGACY)):
        assert "result" in messages_of(post(http, body, idempotency_key="k"))[0]
    for method in MALFORMED_METHODS:
        assert post(http, legacy("ping") | {"method": method}, idempotency_key="k").status_code == 400
    assert statuses(http, agent) == ["completed"]


def test_a_repetition_finds_its_turn_in_a_session_that_went_on(http: httpx.Client) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    first = send(http, call(name, "say: One", 1), idempotency_key="k")
    session = first["structuredContent"]["session_id"]
    second = call(name, "say: Two", 2, arguments={"session_id": session})
    assert send(http, second, idempotency_key="l")["content"][0]["text"] == "Two"
    for accept in (STREAM, "application/json"):
        assert send(http, call(name, "say: One", 3), idempotency_key="k", accept=accept) == first
    assert len(statuses(http, agent)) == 2


def test_a_repetition_may_have_another_trace(http: httpx.Client) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    for number in "ab":
        trace = {"traceparent": f"00-{number * 32}-{number * 16}-01"}
        assert send(http, call(name, "Hello", meta=trace), idempotency_key="k")
    assert statuses(http, agent) == ["completed"]


@pytest.mark.usefixtures("silence")
def test_a_repetition_follows_the_running_call(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, model="faulty/slow")
    name = tool_of(http, agent)
    first = start(http, call(name, "Hello", 1, meta={"progressToken": 1}), **{KEY: "k"})
    second = start(http, call(name, "Hello", 2, meta={"progressToken": 2}), **{KEY: "k"})
    app_fixture.faulty.silence.set()
    for running in (first, second):
        running.join(60)
    results = [running.messages[-1] for running in (first, second)]
    assert [result["id"] for result in results] == [1, 2]
    assert results[0]["result"] == results[1]["result"]
    assert statuses(http, agent) == ["completed"]


def test_a_refused_call_may_be_repeated_with_its_key(http: httpx.Client) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    body = call(name, "Hello", meta={"stint/budget": {"max_tokens": 1}})
    first = post(http, body, idempotency_key="k")
    assert first.status_code in (200, 402)
    assert post(http, body, idempotency_key="k").status_code == first.status_code


def test_a_session_gets_the_budget_of_its_first_call(http: httpx.Client) -> None:
    agent = create_agent(http)
    name = tool_of(http, agent)
    done = send(http, call(name, "Hello", meta={"stint/budget": {"max_tokens": 10_000}}))["structuredContent"]
    shown = http.get(f"/v1/agents/{agent}/session/{done['session_id']}").json()["budget"]
    assert shown["max_tokens"] == 10_000
    assert shown["spent_tokens"] == done["usage"]["total_tokens"]
    response = post(http, call(name, "Hello", meta={"stint/budget": {"max_tokens": 0}}))
    assert (response.status_code, error_of(response)["code"]) == (400, -32602)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:1", 200),
        ("http://localhost", 200),
        ("https://evil.example", 403),
        ("null", 403),
        ("http://127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
def test_web_pages_of_other_origins_are_refused(http: httpx.Client, origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"origin": origin}
    for path in ("/v1/mcp", f"/v1/agents/{create_agent(http)}/mcp"):
        response = post(http, legacy("ping"), path, **headers)
        assert response.status_code == status
        if status == 403:
            assert response.json()["error"]["code"] == "origin_not_allowed"


def test_a_rebound_name_is_no_own_origin(server: Served) -> None:
    port = server.url.rpartition(":")[2]
    host = f"evil.example:{port}"
    headers = {"host": host, "origin": f"http://{host}", "mcp-protocol-version": LEGACY}
    assert httpx.post(f"{server.url}/v1/mcp", json=legacy("ping"), headers=headers).status_code == 403


def test_the_configured_origin_is_allowed(http: httpx.Client, app_fixture: AppFixture) -> None:
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"cors_origin": "https://app.example"})
    try:
        assert post(http, legacy("ping"), origin="https://app.example").status_code == 200
        assert post(http, legacy("ping"), origin="https://other.example").status_code == 403
    finally:
        app_fixture.settings = settings


def test_the_issuer_of_tokens_is_found_by_the_resource(http: httpx.Client, app_fixture: AppFixture) -> None:
    paths = ("/v1/mcp/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource")
    assert [http.get(path).status_code for path in paths] == [404, 404]
    settings, resource = app_fixture.settings, "https://api.example/Prod/v1/mcp"
    own = {"oidc_issuer": "https://issuer.example", "oidc_audience": resource, "oidc_scope_prefix": "stint/"}
    app_fixture.settings = settings.model_copy(update=own)
    try:
        for path in (*paths, f"{paths[1]}/v1/mcp"):
            found = http.get(path).json()
            assert (found["resource"], found["authorization_servers"]) == (resource, ["https://issuer.example"])
            assert found["scopes_supported"] == ["stint/use", "stint/users:act"]
        app_fixture.settings = app_fixture.settings.model_copy(update={"oidc_audience": "stint"})
        assert http.get(paths[0]).status_code == 404
    finally:
        app_fixture.settings = settings


@pytest.mark.parametrize(("depth", "code"), [(5, None), (6, "call_too_deep"), ("x", "invalid_call_depth")])
def test_a_call_that_is_too_deep_is_refused(http: httpx.Client, depth: Any, code: str | None) -> None:
    name = tool_of(http, create_agent(http))
    meta = {"stint/call-depth": depth}
    old = legacy("tools/call", name=name, arguments={"message": "Hello"}, _meta=meta)
    for body in (call(name, "Hello", meta=meta), old):
        answer = messages_of(post(http, body))[-1]
        assert answer.get("error", {"data": {"code": None}})["data"]["code"] == code


def test_an_agent_with_a_forbidden_model_is_no_tool(
    http: httpx.Client, app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed, other = create_agent(http, name="allowed"), create_agent(http, name="other", model="recorded/model")
    name, path = tool_of(http, other), f"/v1/agents/{other}/mcp"
    registry = app_fixture.make_services("").agents.registry
    monkeypatch.setattr(registry, "access", ModelAccess(("scripted/*",)))
    assert [tool["title"] for tool in send(http, legacy("tools/list"))["tools"]] == ["allowed"]
    assert error_of(post(http, call(name, "Hello")))["data"]["code"] == "unknown_tool"
    assert error_of(post(http, legacy("tools/list"), path))["data"]["code"] == "model_not_allowed"
    assert send(http, call(tool_of(http, allowed), "Hello"))["content"]
