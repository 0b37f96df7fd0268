"""The hosted search of the web, with an engine that answers as its maker documents."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.responses_client import (
    RESPONSES,
    WEATHER,
    follow,
    get,
    item_of,
    kinds,
    post,
    respond,
    text_of,
    types_of,
    user,
)
from tests.servers import tavily
from tests.servers.mcp_replies import answer_with, calls_of
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.mcp.provider import McpTools
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

SEARCH = 'call: web_search {"query": "tea"}'
SOURCES = "web_search_call.action.sources"
TOOL = {"type": "web_search"}


@pytest.fixture(scope="module")
def shared_tavily() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(tavily.answer) as server:
        yield server


@pytest.fixture
def searches(shared_tavily: ScriptedHTTPServer, app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    shared_tavily.forget()
    search = WebSearch(Tavily(Guard(["127.0.0.1"]), base_url=shared_tavily.url), tavily.KEY)
    app_fixture.tool_providers = {"tavily-search": search}
    yield shared_tavily
    app_fixture.tool_providers = None


def test_a_search_runs_here_and_the_model_reads_what_it_found(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    response = respond(http, SEARCH, tools=[TOOL])

    assert types_of(response) == ["web_search_call", "message"]
    call = item_of(response, "web_search_call")
    assert call["action"] == {"type": "search", "query": "tea", "queries": ["tea"]}
    assert call["status"] == "completed"
    assert "About tea 1" in text_of(response)
    assert get(http, response["id"]) == response


def test_a_stream_tells_how_a_search_goes(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    events = follow(http, SEARCH, tools=[TOOL])

    assert kinds(events)[2:7] == [
        "output_item.added",
        "web_search_call.in_progress",
        "web_search_call.searching",
        "web_search_call.completed",
        "output_item.done",
    ]


def test_the_pages_are_told_to_who_asks(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    response = respond(http, SEARCH, tools=[TOOL], include=[SOURCES])
    plain = respond(http, SEARCH, tools=[TOOL])

    sources = item_of(response, "web_search_call")["action"]["sources"]
    assert sources[0] == {"type": "url", "url": "https://example.com/1"}
    assert "sources" not in item_of(plain, "web_search_call")["action"]
    assert item_of(get(http, plain["id"], f"?include={SOURCES}"), "web_search_call")["action"]["sources"] == sources


@pytest.mark.parametrize(
    ("kind", "size", "pages"),
    [
        ("web_search", None, 6),
        ("web_search_2025_08_26", "low", 3),
        ("web_search_preview", "medium", 6),
        ("web_search_preview_2025_03_11", "high", 12),
    ],
)
def test_every_name_of_the_tool_is_known_and_its_size_is_the_number_of_pages(
    http: httpx.Client, searches: ScriptedHTTPServer, kind: str, size: str | None, pages: int
) -> None:
    tool = {"type": kind} | ({"search_context_size": size} if size else {})

    response = respond(http, SEARCH, tools=[tool])

    assert searches.bodies[0]["max_results"] == pages
    assert response["tools"] == [{"type": kind, "search_context_size": size or "medium"}]


def test_a_search_that_fails_is_told_to_the_model(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    long = json.dumps({"query": "x" * 401})

    response = respond(http, f"call: web_search {long}", tools=[TOOL], include=[SOURCES])

    assert item_of(response, "web_search_call")["status"] == "failed"
    assert response["status"] == "completed"
    assert tavily.KEY not in str(response)


def test_a_search_goes_back_as_an_item(
    http: httpx.Client, searches: ScriptedHTTPServer, app_fixture: AppFixture
) -> None:
    done = respond(http, SEARCH, tools=[TOOL])
    again: list[Any] = [user("go"), *done["output"], user("and?")]

    respond(http, again, tools=[TOOL], store=False, model="recorded/m")
    respond(http, "and?", previous_response_id=done["id"], model="recorded/m")

    shapes = [[type(message).__name__ for message in request.messages] for request in app_fixture.recorder.requests]
    assert shapes == [["UserInput", "AssistantAnswer", "ToolResult", "AssistantAnswer", "UserInput"]] * 2


def test_the_model_may_have_to_search(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    chosen = respond(http, "tea", tools=[WEATHER, TOOL], tool_choice={"type": "web_search_preview"})
    forbidden = respond(
        http,
        SEARCH,
        tools=[WEATHER, TOOL],
        tool_choice={"type": "allowed_tools", "tools": [{"type": "function", "name": "get_weather"}]},
    )

    assert types_of(chosen) == ["web_search_call", "message"]
    assert types_of(forbidden) == ["message"]
    assert len(searches.requests) == 1


def test_a_search_goes_round_with_a_function_in_one_answer(http: httpx.Client, searches: ScriptedHTTPServer) -> None:
    response = respond(http, f"call: get_weather {{}}\n{SEARCH}", tools=[WEATHER, TOOL])

    assert types_of(response) == ["function_call", "web_search_call"]
    assert http.get(f"{RESPONSES}/{response['id']}").json() == response


SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "additionalProperties": False}


def override(http: httpx.Client, server: ScriptedHTTPServer, app_fixture: AppFixture) -> None:
    """Register tools of an MCP server in place of the built-in search."""
    app_fixture.tool_providers = {"model-context-protocol": McpTools(Guard(["127.0.0.1"]))}
    endpoint = {"uri": f"{server.url}/mcp"}
    group = {"toolgroup_id": "builtin::websearch", "provider_id": "model-context-protocol", "mcp_endpoint": endpoint}
    http.post("/v1/toolgroups", json=group).raise_for_status()


def test_a_server_in_place_of_the_search_is_searched(
    http: httpx.Client, searches: ScriptedHTTPServer, app_fixture: AppFixture
) -> None:
    with ScriptedHTTPServer(answer_with([{"name": "web_search", "inputSchema": SCHEMA}])) as server:
        override(http, server, app_fixture)

        response = respond(http, SEARCH, tools=[TOOL], include=[SOURCES])

        assert calls_of(server) == [("web_search", {"query": "tea"})]
    call = item_of(response, "web_search_call")
    assert (call["status"], call["action"]["query"], call["action"]["sources"]) == ("completed", "tea", [])
    assert "ran" in text_of(response)
    assert searches.requests == []


def test_a_server_in_place_of_the_search_that_does_not_search_is_told(
    http: httpx.Client, searches: ScriptedHTTPServer, app_fixture: AppFixture
) -> None:
    with ScriptedHTTPServer(answer_with(["find"])) as server:
        override(http, server, app_fixture)

        other = post(http, SEARCH, tools=[TOOL])

    assert other.status_code == 400
    assert "'builtin::websearch' has no tool 'web_search'" in other.json()["error"]["message"]
