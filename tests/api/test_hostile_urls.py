"""URLs that cannot be called, in every place that takes one: a 400 that names the field."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import WEATHER, assert_error, open_session, say, turn
from tests.api.app_fixture import AppFixture
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.bootstrap.adapters import Adapters
from stint.models.fetched_images import FetchedImages
from stint.models.openai_compatible import OpenAICompatible
from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.mcp.provider import McpTools

MALFORMED = [
    "http://xn--a/",
    "https://xn--a:8443/path?key=value",
    "http://exa\0mple.com/",
    "http://exam\nple.com/",
    "http://example.com:99999/",
    "http://example.com:port/",
    "http://[::1",
    "http://user:key-of-the-caller@example.com/",
    f"http://{'a.' * 200}com/",
    "http://\u2488.com/",
    "http:///path",
    "http://",
]
UNKNOWN = [
    "http://nowhere.invalid/",
    "http://a..b/",
    f"http://{'a' * 64}.example/",
    "http://a%00b/",
    "http://exa mple.com/",
    "http://[fe80::1%25eth0]/",
]
Send = Callable[[httpx.Client, str], httpx.Response]


def turn_document(http: httpx.Client, url: str) -> httpx.Response:
    document = {"content": {"uri": url}, "mime_type": "text/plain"}
    return say(http, open_session(http), "Hello", documents=[document], stream=True)


def turn_image(http: httpx.Client, url: str) -> httpx.Response:
    return say(http, open_session(http), {"type": "image", "image": {"url": {"uri": url}}}, stream=True)


def turn_images(http: httpx.Client, url: str) -> httpx.Response:
    content = [{"type": "text", "text": "Look"}, {"type": "image", "image": {"url": {"uri": url}}}]
    return say(http, open_session(http), content, stream=True)


def result_image(http: httpx.Client, url: str) -> httpx.Response:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "call: get_weather {}")
    [call] = paused["output_message"]["tool_calls"]
    content = [{"type": "image", "image": {"url": {"uri": url}}}]
    result = {"call_id": call["call_id"], "tool_name": "get_weather", "content": content}
    return http.post(f"{session}/turn/{paused['turn_id']}/resume", json={"tool_responses": [result]})


def respond(http: httpx.Client, part: dict[str, Any]) -> httpx.Response:
    message = {"type": "message", "role": "user", "content": [part]}
    return http.post("/v1/responses", json={"model": "scripted/demo", "input": [message], "stream": True})


def response_file(http: httpx.Client, url: str) -> httpx.Response:
    return respond(http, {"type": "input_file", "filename": "a.txt", "file_url": url})


def response_image(http: httpx.Client, url: str) -> httpx.Response:
    return respond(http, {"type": "input_image", "image_url": url})


def response_server(http: httpx.Client, url: str) -> httpx.Response:
    functions = {"type": "function", "name": "f", "parameters": {}}
    server = {"type": "mcp", "server_label": "s", "server_url": url}
    body = {"model": "scripted/demo", "input": "Hello", "tools": [functions, server], "stream": True}
    return http.post("/v1/responses", json=body)


def conversation_file(http: httpx.Client, url: str) -> httpx.Response:
    part = {"type": "input_file", "filename": "a.txt", "file_url": url}
    return http.post("/v1/conversations", json={"items": [{"type": "message", "role": "user", "content": [part]}]})


def output_image(http: httpx.Client, url: str) -> httpx.Response:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": url}]}
    return http.post("/v1/responses", json={"model": "scripted/demo", "input": [call, output]})


def conversation_image(http: httpx.Client, url: str) -> httpx.Response:
    part = {"type": "input_image", "image_url": url}
    return http.post("/v1/conversations", json={"items": [{"type": "message", "role": "user", "content": [part]}]})


def chat_image(http: httpx.Client, url: str) -> httpx.Response:
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
    return http.post("/v1/chat/completions", json={"model": "scripted/demo", "messages": [message]})


def mcp_toolgroup(http: httpx.Client, url: str) -> httpx.Response:
    body = {"toolgroup_id": "t", "provider_id": "model-context-protocol", "mcp_endpoint": {"uri": url}}
    return http.post("/v1/toolgroups", json=body)


def other_toolgroup(http: httpx.Client, url: str) -> httpx.Response:
    body = {"toolgroup_id": "t", "provider_id": "brave-search", "mcp_endpoint": {"uri": url}}
    return http.post("/v1/toolgroups", json=body)


def http_tool(http: httpx.Client, url: str) -> httpx.Response:
    args = {"tools": [{"name": "f", "url": url}]}
    return http.post("/v1/toolgroups", json={"toolgroup_id": "t", "provider_id": "remote-execution", "args": args})


def agent_with(http: httpx.Client, group: dict[str, Any]) -> httpx.Response:
    config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["builtin::rag", group]}
    return http.post("/v1/agents", json={"agent_config": config})


def agent_endpoint(http: httpx.Client, url: str) -> httpx.Response:
    return agent_with(http, endpoint_at(url))


def agent_generator(http: httpx.Client, url: str) -> httpx.Response:
    return agent_with(http, generator_at(url))


def endpoint_at(url: str) -> dict[str, Any]:
    """Return the toolgroup of an agent's own endpoint."""
    return {"name": "builtin::remote_execution", "args": {"tools": [{"name": "f", "url": url}]}}


def generator_at(url: str) -> dict[str, Any]:
    """Return the toolgroup of a retrieval whose query an endpoint writes."""
    args = {"tools": [{"name": "f", "url": url, "method": "POST"}]}
    generator = {"type": "custom", "toolgroup": "builtin::remote_execution", "args": args}
    retrieval = {"retrieve": "only_before_inference", "vector_db_ids": ["b"], "memory_banks": [{"bank_id": "b"}]}
    return {"name": "builtin::rag", "args": {**retrieval, "query_generator_config": generator}}


def listed_endpoint(http: httpx.Client, url: str) -> httpx.Response:
    return http.get("/v1/tool-runtime/list-tools", params={"mcp_endpoint[uri]": url})


def agent_server(http: httpx.Client, url: str) -> httpx.Response:
    return agent_with(http, server_at(url))


def turn_server(http: httpx.Client, url: str) -> httpx.Response:
    group = server_at(url)
    return say(http, open_session(http), "Hello", toolgroups=[{**group, "args": {**group["args"], "required": True}}])


def server_at(url: str) -> dict[str, Any]:
    """Return the toolgroup of an agent's own MCP server."""
    return {"name": "builtin::mcp", "args": {"server_label": "s", "server_url": url}}


PLACES: dict[Send, str] = {
    turn_document: "documents[0]",
    response_file: "input[0].content[0]",
    response_server: "tools[1].server_url",
    conversation_file: "items[0].content[0]",
    mcp_toolgroup: "mcp_endpoint",
    other_toolgroup: "mcp_endpoint",
    http_tool: "args",
    agent_endpoint: "agent_config.toolgroups[1]",
    agent_generator: "agent_config.toolgroups[1]",
    agent_server: "agent_config.toolgroups[1]",
    turn_server: "toolgroups",
    listed_endpoint: "mcp_endpoint",
}
IMAGES: dict[Send, str] = {
    turn_image: "messages[0].content.image.url.uri",
    turn_images: "messages[0].content[1].image.url.uri",
    result_image: "tool_responses[0].content[0].image.url.uri",
    response_image: "input[0].content[0].image_url",
    output_image: "input[1].output[0].image_url",
    conversation_image: "items[0].content[0].image_url",
    chat_image: "messages[0].content[0].image_url.url",
}


MASKING = (response_server, mcp_toolgroup, http_tool, agent_server)
"""Places that read the URL for credentials before it is checked."""
TYPICAL = ("http://[::1", "http://user:key-of-the-caller@example.com/")


@pytest.mark.parametrize(
    ("place", "url"),
    [
        *((place, url) for place in [*PLACES, *IMAGES] for url in TYPICAL),
        *((place, url) for place in MASKING for url in MALFORMED if url not in TYPICAL),
    ],
)
def test_what_is_no_url_is_the_callers_fault_in_every_place(http: httpx.Client, place: Send, url: str) -> None:
    answer = place(http, url)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].split(".args")[0] == (PLACES | IMAGES)[place], answer.text
    assert "key-of-the-caller" not in answer.text


@pytest.mark.parametrize(
    ("place", "url"),
    [
        *((place, UNKNOWN[0]) for place in PLACES),
        *((place, url) for place in (turn_document, http_tool) for url in UNKNOWN[1:]),
    ],
)
def test_a_host_that_does_not_resolve_is_the_callers_fault_in_every_place(
    http: httpx.Client, place: Send, url: str
) -> None:
    answer = place(http, url)

    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == PLACES[place], answer.text


@pytest.mark.parametrize("group", [endpoint_at, generator_at, server_at])
def test_an_agent_that_names_a_secret_for_its_endpoint_is_refused(
    http: httpx.Client, group: Callable[[str], dict[str, Any]]
) -> None:
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stint/acme/crm"

    error = assert_error(agent_with(http, group(f"http://127.0.0.1/?key={arn}")), 400, "invalid_request")

    assert (error["param"], "Only registered toolgroups" in error["message"]) == ("agent_config.toolgroups[1]", True)


@pytest.mark.parametrize("place", IMAGES)
def test_an_image_at_a_host_that_does_not_resolve_here_is_left_to_its_provider(http: httpx.Client, place: Send) -> None:
    assert place(http, UNKNOWN[0]).status_code == 200


@pytest.fixture
def lost(app_fixture: AppFixture) -> Iterator[None]:
    """Toolgroups of the configuration whose host does not resolve."""
    endpoint = {"uri": "http://nowhere.invalid/mcp"}
    tools = [{"name": "ping", "url": "http://nowhere.invalid/ping"}]
    groups = [
        {"toolgroup_id": "mcp::lost", "provider_id": "model-context-protocol", "mcp_endpoint": endpoint},
        {"toolgroup_id": "http::lost", "provider_id": "remote-execution", "args": {"tools": tools}},
    ]
    settings = app_fixture.settings
    app_fixture.settings = settings.model_copy(update={"registry": json.dumps({"toolgroups": groups})})
    yield
    app_fixture.settings = settings


@pytest.mark.usefixtures("lost")
def test_a_toolgroup_whose_host_does_not_resolve_any_more_is_a_400_that_names_it(http: httpx.Client) -> None:
    session = open_session(http, toolgroups=["mcp::lost"])

    turn = assert_error(say(http, session, "Hello", stream=True), 400, "url_unavailable")
    listed = assert_error(http.get("/v1/tools", params={"toolgroup_id": "mcp::lost"}), 400, "url_unavailable")
    found = assert_error(http.get("/v1/tools/add"), 400, "url_unavailable")
    called = http.post("/v1/tool-runtime/invoke", json={"tool_name": "ping", "kwargs": {}})

    assert (turn["param"], listed["param"]) == ("toolgroups", "toolgroup_id")
    assert all("Toolgroup 'mcp::lost'" in error["message"] for error in (turn, listed, found))
    assert "Toolgroup 'http::lost'" in assert_error(called, 400, "url_unavailable")["message"]


@pytest.mark.usefixtures("lost")
def test_in_the_middle_of_a_turn_a_host_that_does_not_resolve_is_told_to_the_model(http: httpx.Client) -> None:
    answer = say(http, open_session(http, toolgroups=["http::lost"]), "Please ping").json()

    [called] = [step for step in answer["steps"] if step["step_type"] == "tool_execution"]
    assert "'nowhere.invalid' cannot be found" in called["tool_responses"][0]["content"]
    assert answer["status"] == "completed"


@pytest.fixture
def redirecting(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server that callers may reach, which redirects to an invalid URL.

    Toolgroups of the configuration are there as well.
    """
    with ScriptedHTTPServer(lambda _: Reply(status=302, headers={"Location": "http://xn--a/"})) as server:
        guard = Guard(["127.0.0.1"])
        monkeypatch.setattr(
            app_fixture,
            "tool_providers",
            {"model-context-protocol": McpTools(guard), "remote-execution": HttpEndpoints(guard)},
        )
        tools = [{"name": "ping", "url": f"{server.url}/ping"}]
        groups = [
            {"toolgroup_id": "mcp::r", "provider_id": "model-context-protocol", "mcp_endpoint": {"uri": server.url}},
            {"toolgroup_id": "http::r", "provider_id": "remote-execution", "args": {"tools": tools}},
        ]
        registry = json.dumps({"toolgroups": groups})
        monkeypatch.setattr(
            app_fixture,
            "settings",
            app_fixture.settings.model_copy(update={"registry": registry, "allowed_hosts": "127.0.0.1"}),
        )
        chat = OpenAICompatible(server.url, repeats=0)
        monkeypatch.setitem(
            app_fixture.models, "fetched", lambda: FetchedImages(chat, Adapters(app_fixture.settings).fetch)
        )
        yield server.url


@pytest.mark.parametrize("place", [turn_document, response_file, response_server, conversation_file, listed_endpoint])
def test_a_redirect_to_what_is_no_url_is_the_callers_fault_in_every_place(
    http: httpx.Client, redirecting: str, place: Send
) -> None:
    error = assert_error(place(http, redirecting), 400, "url_unavailable")

    assert error["param"] == PLACES[place]
    assert "redirects to an invalid URL" in error["message"]


def test_a_toolgroup_that_redirects_to_what_is_no_url_is_a_400_that_names_it(
    http: httpx.Client, redirecting: str
) -> None:
    session = open_session(http, toolgroups=["mcp::r"])

    turn = assert_error(say(http, session, "Hello", stream=True), 400, "url_unavailable")
    listed = assert_error(http.get("/v1/tools", params={"toolgroup_id": "mcp::r"}), 400, "url_unavailable")
    called = http.post("/v1/tool-runtime/invoke", json={"tool_name": "ping", "kwargs": {}})

    assert (turn["param"], listed["param"]) == ("toolgroups", "toolgroup_id")
    assert all("Toolgroup 'mcp::r'" in error["message"] for error in (turn, listed))
    assert "Toolgroup 'http::r'" in assert_error(called, 400, "url_unavailable")["message"]


def test_a_fetched_image_that_redirects_to_what_is_no_url_is_the_callers_fault(
    http: httpx.Client, redirecting: str
) -> None:
    part = {"type": "input_image", "image_url": redirecting}
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": redirecting}}]}
    body = {"model": "fetched/m", "input": [{"role": "user", "content": [part]}]}
    image = {"type": "image", "image": {"url": {"uri": redirecting}}}

    answers = {
        "input": http.post("/v1/responses", json=body),
        "messages": http.post("/v1/chat/completions", json={"model": "fetched/m", "messages": [message]}),
        "messages ": say(http, open_session(http, model="fetched/m"), image, stream=True),
    }

    for param, answer in answers.items():
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "url_unavailable", param.strip())
        assert "redirects to an invalid URL" in error["message"]
