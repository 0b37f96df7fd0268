"""MCP servers that agents and turns name without a registration, and access to the tools of registered ones."""

import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.api.api_client import (
    WEATHER,
    agent_config,
    assert_error,
    create_agent,
    open_session,
    payloads,
    say,
    turn,
)
from tests.servers.ports import free_port

from stint.domain.redaction import MASK

ADD = 'call: add {"a": 1, "b": 2}'
HEADER = 'call: header {"name": "authorization"}'
Body = dict[str, Any]
Inline = Callable[..., Body]


@pytest.fixture
def inline(mcp: str, mcp_server: str) -> Inline:  # `mcp` allows its address
    """Return a function that makes a toolgroup of the MCP server."""

    def make(path: str = "/mcp", **args: Any) -> Body:
        return {"name": "builtin::mcp", "args": {"server_label": "sums", "server_url": mcp_server + path} | args}

    return make


def results(shown: Body) -> list[str]:
    answers = [answer["content"] for step in shown["steps"] for answer in step.get("tool_responses", ())]
    return [answer if isinstance(answer, str) else answer[0]["text"] for answer in answers]


def test_an_agent_calls_the_tools_of_a_server_that_it_names(http: httpx.Client, inline: Inline) -> None:
    session = open_session(http, toolgroups=[inline()])

    assert results(turn(http, session, ADD)) == ["3"]


def test_a_turn_calls_the_tools_of_a_server_that_it_names(http: httpx.Client, inline: Inline) -> None:
    session = open_session(http)

    assert results(turn(http, session, ADD, toolgroups=[inline()])) == ["3"]


def test_two_servers_with_one_address_get_their_own_headers(http: httpx.Client, inline: Inline) -> None:
    first = inline("/private/mcp", server_label="one", authorization="right-token", allowed_tools=["add"])
    second = inline("/private/mcp", server_label="two", headers={"authorization": "Bearer right-token", "x-a": "b"})
    second["args"]["allowed_tools"] = ["header"]
    session = open_session(http, toolgroups=[first, second])

    shown = [turn(http, session, call) for call in (ADD, 'call: header {"name": "x-a"}')]

    assert [results(each) for each in shown] == [["3"], ["b"]]


def test_a_tool_that_is_not_allowed_is_not_there(http: httpx.Client, inline: Inline) -> None:
    session = open_session(http, toolgroups=[inline(allowed_tools=["add"])])

    assert "There is no tool named 'header'" in results(turn(http, session, HEADER))[0]


@pytest.mark.parametrize(
    "field", [{"authorization": "right-token"}, {"headers": {"Authorization": "Bearer right-token"}}]
)
def test_credentials_are_sent_and_never_shown(http: httpx.Client, inline: Inline, field: Body) -> None:
    agent = create_agent(http, toolgroups=[inline("/private/mcp", **field)])
    session = http.post(f"/v1/agents/{agent}/session", json={"session_name": "s"}).json()["session_id"]

    shown = turn(http, f"/v1/agents/{agent}/session/{session}", HEADER)

    assert results(shown) == ["Bearer ***"]
    read = http.get(f"/v1/agents/{agent}")
    [group] = read.json()["agent_config"]["toolgroups"]
    assert MASK in str(group["args"][next(iter(field))])
    assert "right-token" not in read.text + str(shown)
    assert_error(http.post("/v1/agents", json={"agent_config": read.json()["agent_config"]}), 400, "masked_value")


def test_the_address_is_masked_as_that_of_a_registration(http: httpx.Client, mcp_server: str, inline: Inline) -> None:
    agent = create_agent(http, toolgroups=[inline("/mcp/a1b2c3d4e5?key=k1l2m3n4")])

    [group] = http.get(f"/v1/agents/{agent}").json()["agent_config"]["toolgroups"]

    assert group["args"]["server_url"] == f"{mcp_server}/mcp/{MASK}?key={MASK}"


def test_a_callers_headers_are_added_but_replace_none(http: httpx.Client, mcp_server: str, inline: Inline) -> None:
    session = open_session(http, toolgroups=[inline("/private/mcp", authorization="right-token")])
    own = {"authorization": "Bearer wrong", "x-mine": "mine-only"}
    data = {"X-LlamaStack-Provider-Data": str({"mcp_headers": {f"{mcp_server}/private/mcp": own}}).replace("'", '"')}
    body = {"messages": [{"role": "user", "content": 'call: header {"name": "x-mine"}'}]}

    shown = http.post(f"{session}/turn", json=body, headers=data).json()

    assert results(shown) == ["***"]


@pytest.mark.parametrize("streamed", [True, False])
def test_an_unreachable_server_is_left_out_with_one_line(
    http: httpx.Client, inline: Inline, caplog: pytest.LogCaptureFixture, *, streamed: bool
) -> None:
    gone = {"server_label": "gone", "server_url": f"http://127.0.0.1:{free_port()}/mcp"}
    session = open_session(http, toolgroups=[inline(), {"name": "builtin::mcp", "args": gone}])

    answer = say(http, session, ADD, stream=streamed)

    shown = payloads(answer)[-1]["turn"] if streamed else answer.json()
    assert (shown["status"], results(shown)) == ("completed", ["3"])
    [line] = [each for each in caplog.records if each.levelno == logging.WARNING and "MCP server" in each.message]
    assert getattr(line, "toolgroup_id", "") == "builtin::mcp/gone"


def test_a_server_that_refuses_the_credentials_is_left_out(http: httpx.Client, inline: Inline) -> None:
    session = open_session(http, toolgroups=[inline("/private/mcp", authorization="wrong-token")])

    assert "There is no tool" in results(turn(http, session, ADD))[0]


@pytest.mark.parametrize(
    ("path", "status", "code"), [("/private/mcp", 401, "tool_unauthorized"), ("/nowhere", 502, "tool_unavailable")]
)
def test_a_turn_without_its_required_server_is_refused(
    http: httpx.Client, inline: Inline, path: str, status: int, code: str
) -> None:
    session = open_session(http, toolgroups=[inline(path, required=True)])

    answer = say(http, session, ADD)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert "builtin::mcp/sums" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"server_label": "a b"}, "server_label"),
        ({"server_url": "ftp://127.0.0.1/mcp"}, "must begin with https"),
        ({"server_url": "https://a.example/" + "x" * 9_000}, "at most 8,192"),
        ({"headers": {"host": "a.example"}}, "set by the connection"),
        ({"headers": {"x-a": "line\nbreak"}}, "invalid name or value"),
        ({"authorization": "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stint/acme/c"}, "name secrets"),
        ({"require_approval": "sometimes"}, "require_approval"),
        ({"allowed_tools": [1]}, "allowed_tools"),
        ({"sealed": "x"}, "sealed"),
        ({"required": "yes"}, "required"),
    ],
)
def test_malformed_args_are_refused_by_name(http: httpx.Client, inline: Inline, args: Body, told: str) -> None:
    config = agent_config(toolgroups=[inline(**args)])

    error = assert_error(http.post("/v1/agents", json={"agent_config": config}), 400, "invalid_request")

    assert told in error["message"]
    assert error["param"] == "agent_config.toolgroups[0]"


@pytest.mark.parametrize("url", ["http://169.254.169.254/mcp", "http://10.0.0.1/mcp"])
def test_an_inner_address_is_refused_by_the_agent_and_by_a_turn(http: httpx.Client, inline: Inline, url: str) -> None:
    group = inline(server_url=url)
    session = open_session(http)

    created = http.post("/v1/agents", json={"agent_config": agent_config(toolgroups=[group])})
    started = say(http, session, ADD, toolgroups=[group])

    assert assert_error(created, 400, "url_not_allowed")["param"] == "agent_config.toolgroups[0]"
    assert assert_error(started, 400, "url_not_allowed")["param"] == "toolgroups"


def test_two_servers_with_one_label_are_refused(http: httpx.Client, inline: Inline) -> None:
    config = agent_config(toolgroups=[inline(), inline("/json/mcp")])
    session = open_session(http, toolgroups=[inline()])

    answers = [http.post("/v1/agents", json={"agent_config": config}), say(http, session, ADD, toolgroups=[inline()])]

    for answer in answers:
        assert "label 'sums'" in assert_error(answer, 400, "invalid_request")["message"]


def test_a_tool_with_the_name_of_a_client_tool_is_refused(http: httpx.Client, inline: Inline) -> None:
    session = open_session(http, toolgroups=[inline()], client_tools=[WEATHER | {"name": "add"}])

    assert_error(say(http, session, ADD), 400, "duplicate_tool")
