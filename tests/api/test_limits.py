"""Limits of requests. Each error names the field and the number."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, assert_error, open_session, say, user
from tests.api.app_fixture import AppFixture
from tests.api.test_tools import KIND, FakeToolProvider

from stint.domain.inference import ToolSignature
from stint.domain.limits import MAX_ALL_ARGS_BYTES, MAX_ARGS_BYTES, MAX_HEADERS, MAX_PARTS, MAX_URL_LENGTH
from stint.tools.port import Toolgroup

Body = dict[str, Any]
MODEL = "scripted/demo"
ITEM = {"type": "message", "role": "user", "content": "Hi"}


def client_tools(count: int) -> list[Body]:
    return [{"name": f"t{number}", "parameters": []} for number in range(count)]


def functions(count: int) -> list[Body]:
    return [{"type": "function", "name": f"t{number}", "parameters": {}} for number in range(count)]


def chat_functions(count: int) -> list[Body]:
    return [{"type": "function", "function": {"name": f"t{number}"}} for number in range(count)]


def args(size: int) -> Body:
    return {"x": "y" * (size - len('{"x": ""}'))}


def servers_with_headers(count: int) -> list[Body]:
    server = {"type": "mcp", "server_url": "https://x/", "headers": {"X-Key": "k" * (MAX_HEADERS // 4)}}
    return [server | {"server_label": f"s{number}"} for number in range(count)]


def tools_with(metadata: Body, count: int) -> list[Body]:
    return [{"name": f"t{number}", "metadata": metadata} for number in range(count)]


@pytest.mark.parametrize(
    ("config", "field", "limit"),
    [
        ({"max_infer_iters": 101}, "max_infer_iters", 100),
        ({"max_infer_iters": 10**40}, "max_infer_iters", 100),
        ({"client_tools": client_tools(129)}, "client_tools", 128),
        ({"toolgroups": ["g"] * 129}, "toolgroups", 128),
        ({"toolgroups": ["g", {"name": "h", "args": args(MAX_ARGS_BYTES + 1)}]}, "toolgroups[1]", MAX_ARGS_BYTES),
        ({"toolgroups": [{"name": "h", "args": args(MAX_ARGS_BYTES)}] * 5}, "toolgroups", MAX_ALL_ARGS_BYTES),
        ({"client_tools": [{"name": "t", "metadata": args(MAX_ARGS_BYTES + 1)}]}, "client_tools[0]", MAX_ARGS_BYTES),
        ({"client_tools": tools_with(args(MAX_ARGS_BYTES), 5)}, "client_tools", MAX_ALL_ARGS_BYTES),
    ],
)
def test_agents_and_turns_have_the_same_limits(http: httpx.Client, config: Body, field: str, limit: int) -> None:
    session = open_session(http)

    agent = http.post("/v1/agents", json={"agent_config": agent_config(**config)})
    turn = say(http, session, "Hi", **config)

    for response, name in ((agent, f"agent_config.{field}"), (turn, field)):
        error = assert_error(response, 400, "invalid_request")
        assert error["param"] == name
        assert str(limit) in error["message"]


def test_an_agent_at_its_limits_is_created(http: httpx.Client) -> None:
    groups = [{"name": "h", "args": args(MAX_ARGS_BYTES)}]
    config = agent_config(max_infer_iters=100, client_tools=client_tools(128), toolgroups=groups)

    assert http.post("/v1/agents", json={"agent_config": config}).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "field", "limit"),
    [
        ("responses", {"input": "Hi", "max_infer_iters": 101}, "max_infer_iters", 100),
        ("responses", {"input": "Hi", "tools": functions(129)}, "tools", 128),
        ("responses", {"input": [ITEM] * 10_001}, "input", 10_000),
        ("responses/input_tokens", {"input": [ITEM] * 10_001}, "input", 10_000),
        ("responses/compact", {"input": [ITEM] * 10_001}, "input", 10_000),
        ("chat/completions", {"messages": [user("Hi")], "tools": chat_functions(129)}, "tools", 128),
        ("chat/completions", {"messages": [user("Hi")] * 10_001}, "messages", 10_000),
    ],
)
def test_the_openai_api_has_limits(http: httpx.Client, path: str, body: Body, field: str, limit: int) -> None:
    for base in ("/v1", "/v1/openai/v1"):
        error = assert_error(http.post(f"{base}/{path}", json={"model": MODEL} | body), 400, "invalid_request")

        assert error["param"] == field
        assert str(limit) in error["message"]


def test_a_limit_is_told_in_plain_words(http: httpx.Client) -> None:
    response = http.post("/v1/responses", json={"model": MODEL, "input": "Hi", "tools": functions(129)})

    words = "List should have at most 128 items, not 129"
    assert assert_error(response, 400, "invalid_request")["message"] == f"tools: {words}"
    assert response.json()["detail"]["errors"][0]["msg"] == words


def test_a_response_at_its_limits_is_made(http: httpx.Client) -> None:
    body = {"model": MODEL, "input": [ITEM] * 300, "tools": functions(128), "max_infer_iters": 100}

    assert http.post("/v1/responses", json=body).status_code == 200


def test_messages_of_turns_and_shields_have_a_limit(http: httpx.Client) -> None:
    many = [user("Hi")] * 10_001

    turn = http.post(f"{open_session(http)}/turn", json={"messages": many})
    shield = http.post("/v1/safety/run-shield", json={"shield_id": "s", "messages": many, "params": {}})

    for response in (turn, shield):
        assert assert_error(response, 400, "invalid_request")["param"] == "messages"


PART = {"type": "text", "text": "Hi"}
INPUT_PART = {"type": "input_text", "text": "Hi"}


@pytest.mark.parametrize(
    ("path", "field", "entry"),
    [
        ("responses", "input", {"role": "user", "content": [INPUT_PART] * 10_001}),
        ("responses", "input", {"type": "function_call_output", "call_id": "c", "output": [INPUT_PART] * 10_001}),
        ("responses/input_tokens", "input", {"role": "user", "content": [INPUT_PART] * 10_001}),
        ("conversations", "items", {"role": "user", "content": [INPUT_PART] * 10_001}),
        ("chat/completions", "messages", {"role": "user", "content": [PART] * 10_001}),
        ("safety/run-shield", "messages", {"role": "user", "content": [PART] * 10_001}),
        ("{session}/turn", "messages", {"role": "user", "content": [PART] * 10_001}),
        ("{session}/turn", "documents", {"content": [PART] * 10_001, "mime_type": "text/plain"}),
        ("{session}/turn/t/resume", "tool_responses", {"call_id": "c", "tool_name": "t", "content": [PART] * 10_001}),
    ],
)
def test_the_content_parts_of_a_request_have_a_limit(http: httpx.Client, path: str, field: str, entry: Body) -> None:
    session = open_session(http).removeprefix("/v1/")
    body = {"model": MODEL, "shield_id": "s", "params": {}, "messages": [user("Hi")]} | {field: [entry] * 2}

    error = assert_error(http.post(f"/v1/{path.format(session=session)}", json=body), 400, "invalid_request")

    assert error["param"] == field
    assert error["message"] == f"{field}: At most {MAX_PARTS:,} content parts are allowed, not 20,002"


def test_args_of_a_registration_have_a_limit(http: httpx.Client, bench: FakeToolProvider) -> None:
    body = {"toolgroup_id": "g", "provider_id": KIND, "args": args(MAX_ARGS_BYTES + 1)}

    error = assert_error(http.post("/v1/toolgroups", json=body), 400, "invalid_request")

    assert error["param"] == "args"
    assert "65536" in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "field", "limit"),
    [
        ("models", {"model_id": "m", "metadata": args(MAX_ARGS_BYTES + 1)}, "metadata", MAX_ARGS_BYTES),
        ("shields", {"shield_id": "s", "params": args(MAX_ALL_ARGS_BYTES + 1)}, "params", MAX_ALL_ARGS_BYTES),
        (
            "toolgroups",
            {"toolgroup_id": "g", "provider_id": KIND, "mcp_endpoint": {"uri": "https://x/" + "a" * MAX_URL_LENGTH}},
            "mcp_endpoint",
            MAX_URL_LENGTH,
        ),
        (
            "responses",
            {
                "model": MODEL,
                "input": "Hi",
                "tools": [{"type": "mcp", "server_label": "s", "server_url": "https://x/" + "a" * MAX_URL_LENGTH}],
            },
            "tools",
            MAX_URL_LENGTH,
        ),
        ("responses", {"model": MODEL, "input": "Hi", "tools": servers_with_headers(5)}, "tools", MAX_HEADERS),
    ],
)
def test_what_is_stored_and_shown_has_a_limit(
    http: httpx.Client, path: str, body: Body, field: str, limit: int
) -> None:
    error = assert_error(http.post(f"/v1/{path}", json=body), 400, "invalid_request")

    assert error["param"] == field
    assert str(limit) in error["message"].replace(",", "")


def test_the_endpoint_of_a_list_of_tools_has_a_limit(http: httpx.Client) -> None:
    uri = "https://x/" + "a" * MAX_URL_LENGTH

    response = http.get("/v1/tool-runtime/list-tools", params={"mcp_endpoint": f'{{"uri": "{uri}"}}'})

    assert response.status_code == 400
    assert "mcp_endpoint" in response.text
    assert "8,192" in response.text


class ListingToolProvider(FakeToolProvider):
    """A provider whose toolgroups list as many tools as their name says."""

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        count = int(toolgroup.toolgroup_id.partition("-")[2])
        return [ToolSignature(f"{toolgroup.toolgroup_id}-{number}", "", {}) for number in range(count)]


@pytest.fixture
def bench(app_fixture: AppFixture) -> Iterator[ListingToolProvider]:
    listing = ListingToolProvider()
    app_fixture.tool_providers = {KIND: listing, "model-context-protocol": listing}
    yield listing
    app_fixture.tool_providers = None


def test_the_servers_of_a_turn_list_512_tools_at_most(http: httpx.Client, bench: ListingToolProvider) -> None:
    for name in ("a-500", "b-12", "c-13"):
        http.post("/v1/toolgroups", json={"toolgroup_id": name, "provider_id": KIND, "args": {}})

    within = say(http, open_session(http, toolgroups=["a-500", "b-12"]), "say: fine")
    beyond = say(http, open_session(http, toolgroups=["a-500", "c-13"]), "say: fine")
    chosen = say(http, open_session(http, toolgroups=["a-500", "c-13/c-13-0"]), "say: fine")

    assert [within.status_code, chosen.status_code] == [200, 200]
    error = assert_error(beyond, 400, "too_many_tools")
    assert error["param"] == "toolgroups"
    assert "513" in error["message"]
    assert "512" in error["message"]
    assert "group/tool" in error["message"]


def test_the_mcp_servers_of_a_response_list_512_tools_at_most(http: httpx.Client, bench: ListingToolProvider) -> None:
    def respond(*labels: str, **fields: Any) -> httpx.Response:
        tools = [
            {"type": "mcp", "server_label": label, "server_url": "https://mcp.example", **fields} for label in labels
        ]
        return http.post("/v1/responses", json={"model": MODEL, "input": "say: fine", "tools": tools})

    assert respond("a-500", "b-12").status_code == 200
    assert respond("a-600", allowed_tools=["a-600-7"]).status_code == 200
    error = assert_error(respond("a-500", "c-13"), 400, "too_many_tools")
    assert error["param"] == "tools"
    assert "allowed_tools" in error["message"]
