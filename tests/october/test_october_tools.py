"""Tools that the server runs for agents of October 2024: search, Wolfram|Alpha, and endpoints."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.october.client import OctoberClient, Refused, forms
from tests.october.test_october_turns import WEATHER
from tests.servers import brave, tavily, wolfram
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.http.provider import HttpEndpoints
from stint.tools.search.engines import Brave, Tavily
from stint.tools.search.web_search import SearchEngine, WebSearch
from stint.tools.search.wolfram_alpha import WolframAlpha

SECRET = "remote-secret-7"
FUNCTION = {
    "type": "function_call",
    "function_name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"city": {"param_type": "string", "description": "The city", "required": True}},
}


@pytest.fixture
def services() -> Iterator[dict[str, ScriptedHTTPServer]]:
    with (
        ScriptedHTTPServer(brave.answer) as brave_server,
        ScriptedHTTPServer(tavily.answer) as tavily_server,
        ScriptedHTTPServer(wolfram.answer) as wolfram_server,
    ):
        yield {"brave": brave_server, "tavily": tavily_server, "wolfram": wolfram_server}


@pytest.fixture
def endpoint() -> Iterator[ScriptedHTTPServer]:
    def answer(_: Received) -> Reply:
        return Reply((json.dumps({"weather": "sunny", "you sent": SECRET}).encode(),))

    with ScriptedHTTPServer(answer) as server:
        yield server


@pytest.fixture(autouse=True)
def providers(app_fixture: AppFixture, services: dict[str, ScriptedHTTPServer]) -> Iterator[None]:
    """Run tools with servers of this machine. The configured engine is Tavily."""
    guard = Guard(["127.0.0.1"])
    engines: dict[str, SearchEngine] = {
        "brave": Brave(guard, base_url=f"{services['brave'].url}/res/v1"),
        "tavily": Tavily(guard, base_url=services["tavily"].url),
    }
    app_fixture.tool_providers = {
        "tavily-search": WebSearch(engines["tavily"], tavily.KEY, engines),
        "wolfram-alpha": WolframAlpha(guard, "none", base_url=f"{services['wolfram'].url}/v2"),
        "remote-execution": HttpEndpoints(guard),
    }
    app_fixture.made.clear()
    yield
    app_fixture.tool_providers = None
    app_fixture.made.clear()


def search(engine: str, key: str) -> dict[str, Any]:
    return {"type": "brave_search", "engine": engine, "api_key": key}


def execution(payloads: list[dict[str, Any]]) -> dict[str, Any]:
    [step] = [each for each in payloads[-1]["turn"]["steps"] if each["step_type"] == "tool_execution"]
    return dict(step)


def remote(url: str, **config: Any) -> dict[str, Any]:
    return {**FUNCTION, "remote_execution": {"url": url, "method": "POST", **config}}


@pytest.mark.parametrize(
    ("tool", "used"),
    [
        (search("brave", brave.KEY), "brave"),
        (search("tavily", tavily.KEY), "tavily"),
        (search("brave", ""), "tavily"),
    ],
)
def test_a_search_uses_the_engine_and_the_key_of_its_definition_or_else_the_servers(
    october: OctoberClient, services: dict[str, ScriptedHTTPServer], tool: dict[str, Any], used: str
) -> None:
    payloads = october.say(october.open_session(tools=[tool]), 'brave_search {"query": "tea"}')

    assert forms(payloads)[4:7] == [
        "step_start tool_execution",
        "step_progress tool_execution",
        "step_complete tool_execution",
    ]
    step = execution(payloads)
    assert (step["tool_calls"][0]["tool_name"], step["tool_calls"][0]["arguments"]) == (
        "brave_search",
        {"query": "tea"},
    )
    assert '"top_k"' in step["tool_responses"][0]["content"]
    assert [name for name, server in services.items() if server.requests] == [used]


def test_the_callers_own_key_overrides_that_of_the_definition(
    http: httpx.Client, october: OctoberClient, services: dict[str, ScriptedHTTPServer]
) -> None:
    agent_id, session_id = october.open_session(tools=[search("brave", "wrong")])
    message = {"role": "user", "content": 'brave_search {"query": "tea"}'}
    keys = json.dumps({"brave_search_api_key": brave.KEY})

    turn = http.post(
        "/agents/turn/create",
        json={"agent_id": agent_id, "session_id": session_id, "messages": [message]},
        headers={"X-LlamaStack-ProviderData": keys},
    ).json()["event"]["payload"]["turn"]

    assert '"top_k"' in str(turn["steps"])


def test_the_model_cannot_choose_the_key_or_the_engine(
    october: OctoberClient, services: dict[str, ScriptedHTTPServer]
) -> None:
    session = october.open_session(tools=[search("brave", "")])

    october.say(session, 'brave_search {"query": "tea", "engine": "brave", "api_key": "chosen"}')

    assert services["brave"].requests == []
    assert services["tavily"].requests[0].headers["authorization"] == f"Bearer {tavily.KEY}"


def test_wolfram_alpha_uses_the_key_of_its_definition(october: OctoberClient) -> None:
    tool = {"type": "wolfram_alpha", "api_key": wolfram.APP_ID}

    step = execution(october.say(october.open_session(tools=[tool]), 'wolfram_alpha {"query": "2+2"}'))

    assert "queryresult" in step["tool_responses"][0]["content"]


def test_an_endpoint_runs_a_function_and_the_turn_goes_on(october: OctoberClient, endpoint: ScriptedHTTPServer) -> None:
    config = {"params": {"unit": "C"}, "headers": {"X-Api-Key": SECRET}, "body": {"source": "agent"}}

    payloads = october.say(october.open_session(tools=[remote(endpoint.url, **config)]), "get_weather in Ulm")

    [request] = endpoint.requests
    assert (request.method, parse_qs(urlsplit(request.path).query)) == ("POST", {"unit": ["C"]})
    assert request.json() == {"city": "Ulm", "source": "agent"}
    assert request.headers["x-api-key"] == SECRET
    step = execution(payloads)
    assert "sunny" in step["tool_responses"][0]["content"]
    assert SECRET not in str(payloads)
    assert payloads[-1]["turn"]["output_message"]["tool_calls"] == []
    assert "sunny" in payloads[-1]["turn"]["output_message"]["content"]


def test_with_get_the_arguments_are_in_the_query(http: httpx.Client, endpoint: ScriptedHTTPServer) -> None:
    tool = {**FUNCTION, "remote_execution": {"url": {"uri": endpoint.url}, "method": "GET"}}
    config = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True, "tools": [tool]}
    agent_id = http.post("/agents/create", json={"agent_config": config}).json()["agent_id"]
    session = http.post("/agents/session/create", json={"agent_id": agent_id, "session_name": "s"}).json()

    messages = [{"role": "user", "content": "get_weather in Ulm"}]
    http.post("/agents/turn/create", json={"agent_id": agent_id, "messages": messages, **session})

    assert [parse_qs(urlsplit(each.path).query) for each in endpoint.requests] == [{"city": ["Ulm"]}]


def test_an_endpoint_runs_a_built_in_tool(october: OctoberClient, endpoint: ScriptedHTTPServer) -> None:
    config = {"url": endpoint.url, "method": "POST"}
    tools = [
        {"type": "code_interpreter", "enable_inline_code_execution": False, "remote_execution": config},
        {"type": "photogen", "remote_execution": config},
    ]

    october.say(october.open_session(tools=tools), 'code_interpreter {"code": "print(1)"}')

    assert endpoint.bodies == [{"code": "print(1)"}]


@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://10.0.0.1/", "file:///etc/passwd", "nowhere"])
def test_an_address_that_may_not_be_called_is_refused_at_creation(october: OctoberClient, url: str) -> None:
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[remote(url)])

    assert refused.value.status == 400


def test_the_headers_of_an_endpoint_are_masked_in_every_api(
    http: httpx.Client, october: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    agent_id = october.create_agent(tools=[remote(endpoint.url, headers={"X-Api-Key": SECRET})])

    shown = http.get(f"/v1/agents/{agent_id}").text

    assert endpoint.url in shown
    assert SECRET not in shown


def test_an_endpoint_gets_no_secret_of_the_tenant_that_its_definition_names(
    october: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:stint/default/key-AbCdEf"
    tool = remote(endpoint.url, headers={"X-Api-Key": arn})

    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[tool])

    assert refused.value.status == 400
    assert endpoint.requests == []


def test_the_later_api_runs_the_endpoints_of_an_agent(
    http: httpx.Client, october: OctoberClient, endpoint: ScriptedHTTPServer
) -> None:
    agent_id, session_id = october.open_session(tools=[remote(endpoint.url)])

    body = {"messages": [{"role": "user", "content": "get_weather in Ulm"}]}
    turn = http.post(f"/v1/agents/{agent_id}/session/{session_id}/turn", json=body).json()

    assert "sunny" in turn["output_message"]["content"]


@pytest.mark.parametrize(
    "tool",
    [
        WEATHER,
        {"type": "wolfram_alpha", "api_key": "k"},
        {"type": "memory", "memory_bank_configs": [{"type": "vector", "bank_id": "facts"}]},
    ],
)
def test_a_second_tool_of_the_same_name_is_refused_instead_of_replacing_the_first(
    october: OctoberClient, tool: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[tool, {"type": "photogen"}, tool])

    assert (refused.value.status, refused.value.body["error"]["param"]) == (400, "agent_config.tools[2]")
