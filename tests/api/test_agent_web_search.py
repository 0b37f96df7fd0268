"""Options of the web search in the args of an agent's toolgroup."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.api_client import agent_config, assert_error, open_session, say, turn
from tests.api.app_fixture import AppFixture
from tests.servers import tavily
from tests.servers.scripted_http import ScriptedHTTPServer

from stint.net.guard import Guard
from stint.tools.search.engines import Tavily
from stint.tools.search.web_search import WebSearch

SEARCH = 'call: web_search {"query": "tea"}'


@pytest.fixture
def searches(app_fixture: AppFixture) -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(tavily.answer) as server:
        search = WebSearch(Tavily(Guard(["127.0.0.1"]), base_url=server.url), tavily.KEY)
        app_fixture.tool_providers = {"tavily-search": search}
        app_fixture.made.clear()
        yield server
        app_fixture.tool_providers = None


def search(**args: Any) -> dict[str, Any]:
    return {"name": "builtin::websearch", "args": args}


@pytest.mark.parametrize(
    ("args", "pages"),
    [
        ({"search_context_size": "low"}, 3),
        ({"search_context_size": "high", "user_location": None}, 12),
        ({"search_context_size": "high", "max_results": 2}, 2),
        ({"max_results": 2}, 2),
    ],
)
def test_the_size_of_the_context_is_the_number_of_pages(
    http: httpx.Client, searches: ScriptedHTTPServer, args: dict[str, Any], pages: int
) -> None:
    turn(http, open_session(http, toolgroups=[search(**args)]), SEARCH)
    turn(http, open_session(http), SEARCH, toolgroups=[search(**args)])

    assert [body["max_results"] for body in searches.bodies] == [pages, pages]


@pytest.mark.parametrize(
    "args",
    [
        {"search_context_size": "huge"},
        {"search_context_size": []},
        {"allowed_domains": ["a.example"]},
        {"user_location": {"city": "Bern"}},
    ],
)
def test_options_that_no_engine_has_are_refused_by_name(
    http: httpx.Client, searches: ScriptedHTTPServer, args: dict[str, Any]
) -> None:
    config = agent_config(toolgroups=[search(**args)])

    created = http.post("/v1/agents", json={"agent_config": config})
    started = say(http, open_session(http), SEARCH, toolgroups=[search(**args)])

    for answer, param in ((created, "agent_config.toolgroups[0].args"), (started, "toolgroups")):
        error = assert_error(answer, 400, "invalid_request")
        assert (error["param"], next(iter(args)) in error["message"]) == (param, True)
    assert searches.bodies == []
