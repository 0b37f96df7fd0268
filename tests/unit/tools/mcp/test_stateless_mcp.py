"""MCP servers without sessions: how they are found, what each request says, and what they send back."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.servers.mcp_replies import answer_with, reply
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.domain.content import text_of
from stint.domain.elicitations import continue_call
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.net.guard import Guard
from stint.tools.mcp.param_headers import InvalidMark, encode_value, find_marks
from stint.tools.mcp.provider import McpTools
from stint.tools.port import CallerSession, Invocation, Toolgroup, ToolOutcome
from stint.tools.redaction import RedactedProvider

Count = Callable[[str], int]
REVISION = "2026-07-28"
DISCOVERED = {"resultType": "complete", "supportedVersions": [REVISION], "capabilities": {}}
SCHEMA = {"type": "object"}
CALLED = {"resultType": "complete", "content": [{"type": "text", "text": "ran"}]}
SESSION = CallerSession("agent", "session")


def group(url: str, **config: Any) -> Toolgroup:
    return Toolgroup("mcp::test", "model-context-protocol", mcp_endpoint=url, config=config)


@pytest.fixture
def tools(guard: Guard) -> McpTools:
    return McpTools(guard, timeout=60)


async def invoke(tools: McpTools, url: str, name: str, /, **arguments: Any) -> ToolOutcome:
    return await tools.invoke(group(url), Invocation(name, arguments, "call_1"))


async def ask(tools: McpTools, url: str, name: str, /, **arguments: Any) -> ToolOutcome:
    """Call a tool in a turn, whose client can be asked."""
    return await tools.invoke(group(url), Invocation(name, arguments, "call_1", session=SESSION))


class Stateless:
    """A server of the newer revision. `older` makes it one of an older revision."""

    def __init__(self) -> None:
        self.called: dict[str, Any] = CALLED
        self.ttl = 0
        self.calls = 0
        self.older = False

    def answer(self, received: Received) -> Reply:
        message = received.json() if received.body else {}
        if self.older and received.headers.get("mcp-protocol-version") == REVISION:
            problem = {"code": -32600, "message": "Bad Request: Unsupported protocol version"}
            return reply({"jsonrpc": "2.0", "id": "server-error", "error": problem}, 400)
        if self.older:
            return answer_with(["add"])(received)
        if received.headers.get("mcp-protocol-version") != REVISION:
            problem = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": [REVISION]}}
            return reply({"jsonrpc": "2.0", "id": message.get("id"), "error": problem}, 400)
        self.calls += message["method"] == "tools/call"
        listed = {"tools": [{"name": "add", "inputSchema": SCHEMA}], "ttlMs": self.ttl}
        results = {"server/discover": DISCOVERED, "tools/list": listed, "tools/call": self.called}
        return reply({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]})


@pytest.fixture
def stateless(server: ScriptedHTTPServer) -> Stateless:
    found = Stateless()
    server._answer = found.answer
    return found


def methods(server: ScriptedHTTPServer) -> list[str]:
    return [each.json().get("method") for each in server.requests if each.body]


@pytest.mark.usefixtures("stateless")
async def test_a_call_is_one_request_once_the_revision_is_known(tools: McpTools, server: ScriptedHTTPServer) -> None:
    for _ in range(2):
        assert text_of((await invoke(tools, server.url, "add", a=1)).content) == "ran"

    assert methods(server) == ["server/discover", "tools/call", "tools/call"]


@pytest.mark.usefixtures("stateless")
async def test_each_request_says_what_a_session_knew(tools: McpTools, server: ScriptedHTTPServer) -> None:
    own = {"Mcp-Method": "evil", "mcp_name": "evil", "MCP-Protocol-Version": "1", "Mcp-Param-A": "x", "X-Mine": "y"}

    await tools.invoke(group(server.url, headers=own), Invocation("größe", {"a": 1}, "c"))

    sent = server.requests[-1]
    names = {name: value for name, value in sent.headers.items() if name.startswith(("mcp", "x-", "stint"))}
    assert names == {
        "mcp-protocol-version": REVISION,
        "mcp-method": "tools/call",
        "mcp-name": "=?base64?Z3LDtsOfZQ==?=",
        "stint-call-depth": "1",
        "x-mine": "y",
    }
    assert sent.json()["params"] == {
        "name": "größe",
        "arguments": {"a": 1},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "stint", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
            "stint/call-depth": 1,
        },
    }


async def test_only_the_call_of_a_turn_can_ask(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    assert stateless.calls == 0
    await ask(tools, server.url, "add")

    meta = server.requests[-1].json()["params"]["_meta"]
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {"form": {}}}


async def test_a_server_that_becomes_older_is_called_once(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    await invoke(tools, server.url, "add")
    stateless.older = True
    server.forget()

    assert text_of((await invoke(tools, server.url, "add")).content) == "ran {}"
    again = await invoke(tools, server.url, "add")

    assert text_of(again.content) == "ran {}"
    session = ["initialize", "notifications/initialized", "tools/call"]
    assert methods(server) == ["tools/call", "server/discover", *session, *session]


async def test_a_server_that_becomes_newer_is_called_once(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    stateless.older = True
    await invoke(tools, server.url, "add")
    stateless.older = False
    server.forget()

    assert text_of((await invoke(tools, server.url, "add")).content) == "ran"

    assert methods(server) == ["initialize", "server/discover", "tools/call"]
    assert stateless.calls == 1


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_call_that_may_have_run_is_not_repeated(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless, status: int
) -> None:
    await invoke(tools, server.url, "add")
    server.forget()
    server.script(Reply(status=status))

    with pytest.raises(ToolUnavailable, match=f"answered {status} to POST"):
        await invoke(tools, server.url, "add")

    assert (methods(server), stateless.calls) == (["tools/call"], 1)


@pytest.mark.usefixtures("stateless")
async def test_the_revision_is_kept_as_long_as_a_list(guard: Guard, server: ScriptedHTTPServer) -> None:
    tools = McpTools(guard, list_seconds=60)
    await invoke(tools, server.url, "add")
    CLOCK.move(60)

    await invoke(tools, server.url, "add")

    assert methods(server) == ["server/discover", "tools/call"] * 2


@pytest.mark.parametrize(("ttl", "fresh"), [(0, 30), (1000, 30), (45_000, 45), (10**12, 60)])
async def test_a_server_says_how_long_its_list_may_be_used(
    guard: Guard, server: ScriptedHTTPServer, stateless: Stateless, ttl: int, fresh: int
) -> None:
    tools, stateless.ttl = McpTools(guard, list_seconds=60), ttl
    await tools.list_tools(group(server.url), {})
    CLOCK.move(fresh - 1)
    await tools.list_tools(group(server.url), {})
    before = methods(server).count("tools/list")
    CLOCK.move(1)
    await tools.list_tools(group(server.url), {})

    assert (before, methods(server).count("tools/list")) == (1, 2)


async def test_a_server_of_unknown_revisions_only_is_refused(tools: McpTools, server: ScriptedHTTPServer) -> None:
    problem = {"code": -32022, "message": "No", "data": {"supported": ["2031-01-01"], "requested": REVISION}}
    server.script(reply({"jsonrpc": "2.0", "id": 1, "error": problem}, 400))

    with pytest.raises(InvalidRequest, match="refuses to initialize") as refused:
        await tools.list_tools(group(server.url), {})

    assert refused.value.code == "mcp_server_refused"
    assert len(server.requests) == 1


async def test_marked_parameters_are_sent_as_headers(tools: McpTools, mcp_server: str) -> None:
    url = f"{mcp_server}/stateless/json/mcp"
    listed = {tool.name for tool in await tools.list_tools(group(url), {})}

    said = [
        text_of((await invoke(each, url, "weather", city="Zürich")).content) for each in (tools, McpTools(tools._guard))
    ]

    assert (
        said == ["Zürich =?base64?WsO8cmljaA==?="] * 2
    )  # the second one learns from a refusal which header is missing
    assert ("weather" in listed, "odd" in listed) == (True, False)


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "A"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A B"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"allOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {"$defs": {"x": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}},
        {"properties": {name: {"type": "string", "x-mcp-header": name} for name in ("a", "A")}},
    ],
)
def test_a_mark_where_no_header_can_be_sent_is_invalid(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidMark):
        find_marks(schema)


@pytest.mark.parametrize(("count", "valid"), [(32, True), (33, False), (20_000, False)])
def test_many_marks_in_a_schema_are_refused(count: int, valid: bool) -> None:
    marked = {f"a{n}": {"type": "string", "x-mcp-header": f"a{n}"} for n in range(count)}
    schema = {"type": "object", "properties": marked}

    if valid:
        assert len(find_marks(schema)) == count
    else:
        with pytest.raises(InvalidMark):
            find_marks(schema)


def test_a_mark_is_found_below_properties_only() -> None:
    marked = {"type": "string", "x-mcp-header": "City"}
    schema = {
        "properties": {"x-mcp-header": {"type": "string"}, "place": {"properties": {"city": marked}}},
        "default": {"x-mcp-header": 5},
        "$defs": {"x-mcp-header": {"type": "string"}},
    }

    assert find_marks(schema) == {("place", "city"): "City"}


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("plain", "plain"),
        ("a b", "a b"),
        (" a", "=?base64?IGE=?="),
        ("ö", "=?base64?w7Y=?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("", ""),
    ],
)
def test_a_value_that_is_no_plain_text_is_encoded(value: str, sent: str) -> None:
    assert encode_value(value) == sent


async def test_a_server_that_wants_to_be_asked_again_is(tools: McpTools, mcp_server: str, seen: Count) -> None:
    outcome = await invoke(tools, f"{mcp_server}/stateless/mcp", "poll")

    assert (text_of(outcome.content), seen("polled")) == ("done", 2)


@pytest.mark.parametrize("state", [{}, {"requestState": None}, {"requestState": ""}])
async def test_a_call_without_a_state_does_not_start_again(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless, state: dict[str, Any]
) -> None:
    stateless.called = {"resultType": "input_required", **state}

    outcome = await ask(tools, server.url, "add")

    assert (outcome.error, stateless.calls) == (True, 1)
    assert "without a state" in text_of(outcome.content)


@pytest.mark.parametrize(
    ("name", "refused"), [("think", "sampling/createMessage"), ("visit", "elicitation/create with the mode url")]
)
async def test_other_requests_of_servers_are_refused_by_name(
    tools: McpTools, mcp_server: str, name: str, refused: str
) -> None:
    outcome = await ask(tools, f"{mcp_server}/stateless/mcp", name)

    assert (outcome.error, outcome.asks) == (True, None)
    assert refused in text_of(outcome.content)
    assert "evil.example" not in text_of(outcome.content)


async def test_a_question_has_its_form_and_the_state_of_the_server(tools: McpTools, mcp_server: str) -> None:
    outcome = await ask(tools, f"{mcp_server}/stateless/mcp", "book", date="May 1")

    assert outcome.asks is not None
    assert outcome.asks.forms["form_1"].message == "How many come on May 1?"
    assert list(outcome.asks.forms["form_1"].requested_schema["properties"]) == ["guests", "window", "table"]
    assert str(outcome.asks.state).startswith("1.")
    assert str(outcome.asks.state) not in text_of(outcome.content)


LONG = "x" * 20_000


@pytest.mark.parametrize(
    ("params", "state"),
    [
        ({"message": "m"}, "s"),
        ({"requestedSchema": {"properties": {}}}, "s"),
        ({"message": "m", "requestedSchema": {"properties": {"a": 1}}}, "s"),
        ({"message": "m", "requestedSchema": {"properties": {LONG: {}}}}, "s"),
        ({"message": "m", "requestedSchema": {"properties": {"a": {"description": LONG}}}}, "s"),
        ({"message": "m", "requestedSchema": {"properties": {str(n): {} for n in range(33)}}}, "s"),
        ({"message": "m", "requestedSchema": {"properties": {}}}, LONG * 4),
        ({"message": "m", "requestedSchema": {"properties": {}}}, "s" * 64_000),
    ],
)
async def test_a_form_that_cannot_be_shown_is_a_failure(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless, params: dict[str, Any], state: str
) -> None:
    requests = {"q": {"method": "elicitation/create", "params": params}}
    stateless.called = {"resultType": "input_required", "inputRequests": requests, "requestState": state}

    outcome = await ask(tools, server.url, "add")

    assert (outcome.error, outcome.asks) == (True, None)
    assert "cannot be shown" in text_of(outcome.content)


async def test_the_text_of_a_question_is_short_and_printable(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    params = {"message": f"\x1b[31mPay\x00\n{LONG}", "requestedSchema": {"properties": {}}}
    stateless.called = {
        "resultType": "input_required",
        "inputRequests": {"q": {"method": "elicitation/create", "params": params}},
    }

    outcome = await ask(tools, server.url, "add")

    assert outcome.asks is not None
    said = outcome.asks.forms["form_1"].message
    assert said.startswith("[31mPay \nxxx")
    assert len(said) < 4_010


async def test_long_keys_of_forms_are_told_apart(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    keys = ["k" * 128 + end for end in ("a", "b")]
    params = {"message": "m", "requestedSchema": {"properties": {"p": {"type": "string"}}}}
    requests = {key: {"method": "elicitation/create", "params": params} for key in keys}
    stateless.called = {"resultType": "input_required", "inputRequests": requests}
    asked = (await ask(tools, server.url, "add")).asks
    assert asked is not None

    answered = continue_call(asked, {"form_1": {"p": "1"}, "form_2": {"p": "2"}}, accept=True)
    await tools.invoke(group(server.url), Invocation("add", {}, "c", session=SESSION, answered=answered))

    sent = server.requests[-1].json()["params"]["inputResponses"]
    assert {key: response["content"]["p"] for key, response in sent.items()} == {keys[0]: "1", keys[1]: "2"}


async def test_nothing_shown_of_a_form_has_a_credential(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    secret = "sekret-token-123456"
    said = f"Bearer {secret}"
    params = {"message": said, "requestedSchema": {"properties": {said: {"type": "string", "description": said}}}}
    requests = {said: {"method": "elicitation/create", "params": params}}
    stateless.called = {"resultType": "input_required", "inputRequests": requests}
    called = Invocation("add", {}, "c", session=SESSION)

    outcome = await RedactedProvider(tools).invoke(group(server.url, authorization=secret), called)

    assert outcome.asks is not None
    assert list(outcome.asks.forms) == ["form_1"]
    assert secret not in f"{outcome.asks.forms} {outcome.content}"
    assert list(outcome.asks.server_keys.values()) == [said]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'"x"',
        b"{",
        b"null",
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{"content":5}}',
        b'{"jsonrpc":"2.0","id":1,"result":[]}',
    ],
)
@pytest.mark.usefixtures("stateless")
async def test_an_answer_that_is_not_of_the_protocol_is_unavailable(
    tools: McpTools, server: ScriptedHTTPServer, body: bytes
) -> None:
    await invoke(tools, server.url, "add")
    server.script(Reply((body,)))

    with pytest.raises(ToolUnavailable, match="violated the protocol"):
        await invoke(tools, server.url, "add")


@pytest.mark.usefixtures("stateless")
async def test_an_event_stream_without_an_answer_is_unavailable(tools: McpTools, server: ScriptedHTTPServer) -> None:
    await invoke(tools, server.url, "add")
    note = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}}).encode()
    server.script(Reply((b"data: " + note + b"\n\n",), headers={"Content-Type": "text/event-stream"}))

    with pytest.raises(ToolUnavailable, match="without an answer"):
        await invoke(tools, server.url, "add")


@pytest.mark.usefixtures("stateless")
async def test_a_redirect_is_not_followed(tools: McpTools, server: ScriptedHTTPServer) -> None:
    await invoke(tools, server.url, "add")
    server.forget()
    server.script(Reply(status=307, headers={"Location": f"{server.url}/other"}))

    with pytest.raises(ToolUnavailable, match="answered 307"):
        await invoke(tools, server.url, "add")

    assert len(server.requests) == 1


def refused_after_it_ran(status: int, body: Any) -> Callable[[Received], Reply]:
    """Return a server of both revisions, which runs a stateless call and answers with an error."""
    older = answer_with(["add"])

    def answer(received: Received) -> Reply:
        message = received.json() if received.body else {}
        if received.headers.get("mcp-protocol-version") != REVISION:
            return older(received)
        if message["method"] == "tools/call":
            return reply({"jsonrpc": "2.0", "id": message["id"], **body}, status) if body else Reply(status=status)
        return reply({"jsonrpc": "2.0", "id": message["id"], "result": DISCOVERED})

    return answer


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (422, {}),
        (409, {}),
        (400, {}),
        (404, {}),
        (422, {"error": {"code": -32602, "message": "The order was placed twice"}}),
        (400, {"error": {"code": -32000, "message": "The order was placed, but the mail failed"}}),
        (400, {"error": {"code": -32600, "message": "An inner request was wrong"}}),
        (200, {"error": {"code": -32601, "message": "An inner method is missing"}}),
    ],
)
async def test_a_server_that_named_the_revision_runs_a_call_once(
    tools: McpTools, server: ScriptedHTTPServer, status: int, body: Any
) -> None:
    server._answer = refused_after_it_ran(status, body)

    outcome = await invoke(tools, server.url, "add", a=1)

    assert outcome.error
    assert body.get("error", {}).get("message", f"answered {status}") in text_of(outcome.content)
    assert (methods(server).count("tools/call"), methods(server).count("initialize")) == (1, 0)


@pytest.mark.parametrize("discovery", [Reply(status=503), Reply(status=429), Reply((b"<html>",)), Reply((b"{}",))])
async def test_no_call_is_repeated_while_the_revision_is_unclear(
    tools: McpTools, server: ScriptedHTTPServer, discovery: Reply
) -> None:
    server._answer = refused_after_it_ran(404, {})
    await invoke(tools, server.url, "add")
    server.forget()
    server.script(Reply(status=404), discovery)

    assert (await invoke(tools, server.url, "add")).error

    assert methods(server) == ["tools/call", "server/discover"]


async def test_a_call_that_has_begun_starts_no_session(
    tools: McpTools, server: ScriptedHTTPServer, stateless: Stateless
) -> None:
    stateless.called = {"resultType": "input_required", "requestState": "s"}
    problem = {"code": -32022, "message": "No", "data": {"supported": ["2025-11-25"]}}
    await invoke(tools, server.url, "add")
    server.forget()
    again = reply({"jsonrpc": "2.0", "id": 2, "error": problem}, 400)
    server.script(reply({"jsonrpc": "2.0", "id": 1, "result": stateless.called}), again)

    outcome = await invoke(tools, server.url, "add")

    assert "changed its revision" in text_of(outcome.content)
    assert methods(server) == ["tools/call", "tools/call"]
