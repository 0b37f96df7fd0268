"""Agents whose tools lead back to them: the depth of their calls, which ends them."""

import json
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx
import pytest
from tests.api.agents_api_client import AGENT, BETA, NONE, SESSIONS, OpenStream, message, post_events
from tests.api.api_client import assert_error, create_agent, create_session, open_session, turn, user
from tests.api.app_fixture import AppFixture, Served, wait_until
from tests.api.responses_client import RESPONSES
from tests.api.test_automations import AUTOMATIONS, DAILY, begin
from tests.api.test_tool_approvals import approve
from tests.api.test_when_busy import SLOW, running, status_of, waiting
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.inference import (
    Accepted,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    ToolResult,
)
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.mcp.provider import McpTools

HEADER = "Stint-Call-Depth"
PROBE = "call: probe {}"
TOO_DEEP = "at most 5 are allowed"
NO_PARAMETERS = {"type": "object", "properties": {}}
Body = dict[str, Any]


class Caller:
    """A model that calls its only tool, and then says what it got."""

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        yield Accepted()
        last = request.messages[-1]
        if isinstance(last, ToolResult):
            yield TextChunk(f"said: {last.content}")
            yield Finished(FinishReason.stop)
        else:
            yield ToolCallChunk(0, "c0", request.tools[0].name, arguments_of(request))
            yield Finished(FinishReason.tool_calls)


def arguments_of(request: InferenceRequest) -> str:
    """Return the arguments of a call: a message, if the tool has one."""
    return json.dumps({"message": "go"} if "message" in request.tools[0].parameters.get("properties", {}) else {})


@pytest.fixture
def outer() -> Iterator[ScriptedHTTPServer]:
    """Yield a server outside of this system, which records the calls of tools."""
    with ScriptedHTTPServer(lambda _: Reply((b"probed",))) as server:
        yield server


@pytest.fixture(autouse=True)
def providers(app_fixture: AppFixture) -> Iterator[None]:
    guard = Guard(["127.0.0.1"])
    app_fixture.tool_providers = {"remote-execution": HttpEndpoints(guard), "model-context-protocol": McpTools(guard)}
    app_fixture.models = {"caller": Caller}
    app_fixture.made.clear()
    yield
    app_fixture.tool_providers, app_fixture.models = None, {}
    app_fixture.made.clear()


def probe(url: str, **definition: Any) -> Body:
    """Return a toolgroup whose only tool is a request to a server."""
    tool = {
        "name": "probe",
        "description": "Probe.",
        "parameters": NO_PARAMETERS,
        "url": url,
        "method": "POST",
    }
    return {"name": "builtin::remote_execution", "args": {"tools": [tool | definition]}}


def depths(server: ScriptedHTTPServer) -> list[str | None]:
    return [each.headers.get(HEADER.lower()) for each in server.requests]


def at(depth: int | str) -> dict[str, str]:
    return {HEADER: str(depth)}


@pytest.mark.parametrize("value", ["-1", "1.5", "x", "", "1, 2", "1000"])
@pytest.mark.parametrize("path", ["/v1/agents", RESPONSES, "/v1/models"])
def test_a_malformed_depth_is_refused_by_name(http: httpx.Client, path: str, value: str) -> None:
    error = assert_error(http.get(path, headers=at(value)), 400, "invalid_call_depth")

    assert error["param"] == HEADER


def test_two_depths_are_refused(http: httpx.Client) -> None:
    answer = http.get("/v1/agents", headers=[(HEADER, "1"), (HEADER, "2")])

    assert_error(answer, 400, "invalid_call_depth")


def test_a_run_above_the_largest_depth_is_refused_in_each_api(http: httpx.Client, app_fixture: AppFixture) -> None:
    agent = create_agent(http, model=SLOW)
    session, busy = create_session(http, agent), create_session(http, agent)
    first = running(http, busy)
    said = {"messages": [user("hi")]}
    model = {"model": "scripted/demo"}
    requests: list[tuple[str, Body]] = [
        (f"{session}/turn", said),
        (f"{busy}/turn", said | {"when_busy": "enqueue"}),
        (RESPONSES, model | {"input": "hi"}),
        (RESPONSES, model | {"input": "hi", "background": True}),
        ("/v1/chat/completions", model | said),
        ("/v1/tool-runtime/invoke", {"tool_name": "knowledge_search", "kwargs": {"query": "a", "vector_db_ids": []}}),
        (SESSIONS, {"environment": NONE, "agent": AGENT, "input": "hi"}),
        (SESSIONS, {"environment": NONE, "agent": AGENT, "input": "hi", "stream": True}),
    ]

    answers = [
        http.post(path, json=body, headers=at(6) | (BETA if path == SESSIONS else {})) for path, body in requests
    ]

    for answer in answers:
        error = assert_error(answer, 400, "call_too_deep")
        assert TOO_DEEP in error["message"]
        assert answer.headers["x-should-retry"] == "false"
    assert http.get(f"/v1/agents/{agent}", headers=at(6)).status_code == 200
    assert waiting(app_fixture, busy) == 0
    app_fixture.faulty.silence.set()
    assert status_of(first.last) == "completed"


def test_a_run_at_the_largest_depth_runs(http: httpx.Client) -> None:
    assert http.post(RESPONSES, json={"model": "scripted/demo", "input": "hi"}, headers=at(5)).status_code == 200


@pytest.mark.parametrize("own", ["stint-call-depth", "Stint_Call_Depth", "STINT.CALL.DEPTH"])
def test_nothing_replaces_the_depth_of_a_call(http: httpx.Client, outer: ScriptedHTTPServer, own: str) -> None:
    session = open_session(http, toolgroups=[probe(f"{outer.url}/probe", headers={own: "0"})])
    data = json.dumps({"http_headers": {outer.url: {own: "0"}}})

    http.post(f"{session}/turn", json={"messages": [user(PROBE)]}, headers=at(2) | {"X-LlamaStack-Provider-Data": data})

    [received] = outer.requests
    sent = {name: value for name, value in received.headers.items() if "depth" in name.lower()}
    assert sent == {HEADER.lower(): "3"}


@pytest.mark.parametrize("own", [{}, {"stint-call-depth": "0"}, {"Stint_Call_Depth": "0"}])
def test_calls_of_mcp_tools_say_their_depth(http: httpx.Client, mcp_server: str, own: Body) -> None:
    args = {"server_label": "peer", "server_url": f"{mcp_server}/mcp", "headers": own}
    session = open_session(http, toolgroups=[{"name": "builtin::mcp", "args": args}])

    body = {"messages": [user('call: header {"name": "stint-call-depth"}')]}
    shown = http.post(f"{session}/turn", json=body, headers=at(2)).json()

    assert "3" in str([step["tool_responses"] for step in shown["steps"] if step["step_type"] == "tool_execution"])


class Relay(BaseHTTPRequestHandler):
    """Another server, whose only path runs a turn of an agent and passes the depth on."""

    http: httpx.Client
    agent = ""
    depths: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        depth = self.headers[HEADER]
        self.depths.append(depth)
        turn = f"{create_session(self.http, self.agent)}/turn"
        answer = self.http.post(turn, json={"messages": [user("go")]}, headers=at(depth))
        self.send_response(answer.status_code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def relay(http: httpx.Client) -> Iterator[tuple[type[Relay], str]]:
    """Yield the class of a relay, and its URL."""
    handler: type[Relay] = type("OneRelay", (Relay,), {"http": http, "depths": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler, f"http://127.0.0.1:{server.server_port}/turn"
        server.shutdown()
        thread.join()


def test_an_agent_that_reaches_itself_over_another_server_ends(
    http: httpx.Client, relay: tuple[type[Relay], str]
) -> None:
    handler, url = relay
    handler.agent = create_agent(http, model="caller/any", toolgroups=[probe(url)])

    said = turn(http, create_session(http, handler.agent), "go")

    assert handler.depths == ["1", "2", "3", "4", "5", "6"]
    assert said["status"] == "completed"
    assert TOO_DEEP in said["output_message"]["content"]


def test_an_agent_that_reaches_itself_directly_ends(http: httpx.Client, server: Served) -> None:
    agent = create_agent(http, model="caller/any", toolgroups=["self"])
    tool = {
        "name": "ask_self",
        "description": "Ask the agent.",
        "parameters": NO_PARAMETERS,
        "method": "POST",
        "url": server.url + SESSIONS,
        "headers": BETA,
        "body": {"environment": NONE, "agent_id": agent, "input": "go", "stream": True},
    }
    body = {"toolgroup_id": "self", "provider_id": "remote-execution", "args": {"tools": [tool]}}
    assert http.post("/v1/toolgroups", json=body).status_code == 200

    said = turn(http, create_session(http, agent), "go")

    assert server.posts["sessions"] == 6
    assert TOO_DEEP in said["output_message"]["content"]


def test_a_turn_that_waits_in_line_keeps_its_depth(http: httpx.Client, app_fixture: AppFixture) -> None:
    gate = threading.Event()
    with ScriptedHTTPServer(lambda _: Reply((b"probed",), before=gate)) as outer:
        session = open_session(http, toolgroups=[probe(f"{outer.url}/probe")])
        with ThreadPoolExecutor() as threads:
            first = threads.submit(turn, http, session, PROBE)
            wait_until(lambda: len(outer.requests) == 1)
            body = {"messages": [user(PROBE)], "when_busy": "enqueue"}
            second = threads.submit(http.post, f"{session}/turn", json=body, headers=at(3))
            wait_until(lambda: waiting(app_fixture, session) == 1)
            gate.set()

        assert (first.result()["status"], second.result().status_code) == ("completed", 200)
        assert depths(outer) == ["1", "4"]


def test_a_running_turn_takes_no_deeper_message(http: httpx.Client, app_fixture: AppFixture) -> None:
    gate = threading.Event()
    with ScriptedHTTPServer(lambda _: Reply((b"probed",), before=gate)) as outer:
        session = open_session(http, toolgroups=[probe(f"{outer.url}/probe")])
        with ThreadPoolExecutor() as threads:
            first = threads.submit(turn, http, session, PROBE)
            wait_until(lambda: len(outer.requests) == 1)
            body = {"messages": [user(PROBE)], "when_busy": "merge"}
            second = threads.submit(http.post, f"{session}/turn", json=body, headers=at(3))
            wait_until(lambda: waiting(app_fixture, session) == 1)
            gate.set()

        assert first.result()["turn_id"] != second.result().json()["turn_id"]
        assert depths(outer) == ["1", "4"]


def test_a_resumed_turn_keeps_its_depth(http: httpx.Client, outer: ScriptedHTTPServer) -> None:
    session = open_session(http, toolgroups=[probe(f"{outer.url}/probe") | {"require_approval": "always"}])
    paused = http.post(f"{session}/turn", json={"messages": [user(PROBE)]}, headers=at(3)).json()
    assert paused["status"] == "awaiting_input"

    resumed = [approve(http, session, paused), approve(http, session, paused, headers=at(1))]

    assert resumed[0].json()["status"] == "completed"
    assert depths(outer) == ["4"]


def test_input_of_a_session_keeps_its_depth(
    http: httpx.Client, app_fixture: AppFixture, outer: ScriptedHTTPServer
) -> None:
    agent = create_agent(http, toolgroups=[probe(f"{outer.url}/probe")])
    session = create_session(http, agent).rsplit("/", 1)[1]

    assert post_events(http, session, message(PROBE), **at(2)).status_code == 202
    app_fixture.run_waiting()

    assert depths(outer) == ["3"]


def test_an_open_stream_runs_input_at_its_own_depth(
    http: httpx.Client, server: Served, outer: ScriptedHTTPServer
) -> None:
    agent = create_agent(http, toolgroups=[probe(f"{outer.url}/probe")])
    session = create_session(http, agent).rsplit("/", 1)[1]

    with OpenStream(server, session) as stream:
        assert post_events(http, session, message(PROBE), **at(2)).status_code == 202
        stream.wait_for("turn.completed")
        assert post_events(http, session, message(PROBE)).status_code == 202
        stream.wait_for("turn.completed", 2)

    assert depths(outer) == ["3", "1"]


def test_a_background_response_keeps_its_depth(http: httpx.Client, app_fixture: AppFixture, mcp_server: str) -> None:
    tool = {"type": "mcp", "server_label": "peer", "server_url": f"{mcp_server}/mcp", "require_approval": "never"}
    said = 'call: header {"name": "stint-call-depth"}'
    body = {"model": "scripted/demo", "input": said, "tools": [tool], "background": True}

    queued = http.post(RESPONSES, json=body, headers=at(4)).json()
    app_fixture.work_off()

    output = http.get(f"{RESPONSES}/{queued['id']}").json()["output"]
    assert [item["output"] for item in output if item["type"] == "mcp_call"] == ["5"]


@pytest.mark.parametrize("by", ["schedule", "request"])
def test_an_automation_has_the_depth_of_its_creator(
    http: httpx.Client, app_fixture: AppFixture, outer: ScriptedHTTPServer, by: str
) -> None:
    agent = create_agent(http, toolgroups=[probe(f"{outer.url}/probe")])
    body = DAILY | {"target": begin(PROBE, agent_id=agent)}
    automation = http.post(AUTOMATIONS, json=body, headers=BETA | at(2 if by == "schedule" else 0)).json()

    if by == "schedule":
        app_fixture.fire_schedules()
    else:
        invocations = f"{AUTOMATIONS}/{automation['id']}/invocations"
        assert http.post(invocations, headers=BETA | at(2)).status_code < 300
    app_fixture.run_automations()
    app_fixture.run_waiting()

    assert depths(outer) == ["3"]


@pytest.mark.parametrize("path", ["/v1/agents/{agent}/mcp", "/v1/mcp"])
def test_an_agent_that_is_its_own_tool_by_mcp_ends(http: httpx.Client, server: Served, path: str) -> None:
    agent = create_agent(http, model="caller/any", toolgroups=["self"])
    group = {
        "toolgroup_id": "self",
        "provider_id": "model-context-protocol",
        "mcp_endpoint": {"uri": server.url + path.format(agent=agent)},
    }
    assert http.post("/v1/toolgroups", json=group).status_code == 200

    said = turn(http, create_session(http, agent), "go")

    assert said["status"] == "completed"
    assert TOO_DEEP in said["output_message"]["content"]
