import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.servers import brave, tavily
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.content import text_of
from stint.domain.errors import ToolUnavailable
from stint.net.guard import Guard
from stint.tools.port import Invocation, Toolgroup, ToolOutcome
from stint.tools.search.engines import Brave, Tavily
from stint.tools.search.web_search import WebSearch

KEYS = {"brave": brave.KEY, "tavily": tavily.KEY}
Make = Callable[..., WebSearch]


@pytest.fixture(params=["brave", "tavily"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def service(engine: str) -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer({"brave": brave.answer, "tavily": tavily.answer}[engine]) as server:
        yield server


@pytest.fixture
def make(engine: str, service: ScriptedHTTPServer, guard: Guard) -> Make:
    def make(key: Any = KEYS[engine], **options: Any) -> WebSearch:
        if engine == "brave":
            return WebSearch(Brave(guard, base_url=f"{service.url}/res/v1", **options), key)
        return WebSearch(Tavily(guard, base_url=service.url, **options), key)

    return make


def group(**config: Any) -> Toolgroup:
    return Toolgroup("builtin::websearch", "web-search", config=config)


async def search(
    tool: WebSearch, query: Any = "tea", *, name: str = "web_search", config: dict[str, Any] | None = None, **rest: Any
) -> ToolOutcome:
    arguments = {"query": query, **rest.pop("arguments", {})}
    return await tool.invoke(group(**(config or {})), Invocation(name, arguments, "call_1", rest))


async def test_the_tool_is_listed_as_llama_stack_lists_it(make: Make) -> None:
    (tool,) = await make().list_tools(group(), {})

    assert (tool.name, tool.description) == ("web_search", "Search the web for information")
    assert tool.parameters["required"] == ["query"]


async def test_both_engines_answer_in_one_shape(make: Make, engine: str) -> None:
    outcome = await search(make())

    assert not outcome.error
    found = json.loads(text_of(outcome.content))
    assert found["query"] == "tea"
    assert len(found["top_k"]) == 3
    first = {"url": "https://example.com/1"}
    assert (
        found["top_k"][0]
        == {
            "brave": first | {"title": "Page 1 & more", "content": "About tea '1'\none\ntwo"},
            "tavily": first | {"title": "Page 1", "content": "About tea 1", "score": 0.99},
        }[engine]
    )


@pytest.mark.parametrize("name", ["web_search", "brave_search"])
async def test_the_tool_answers_to_both_of_its_names(make: Make, name: str) -> None:
    assert not (await search(make(), name=name)).error


async def test_another_name_is_an_outcome(make: Make) -> None:
    outcome = await search(make(), name="bing_search")

    assert outcome.error
    assert "bing_search" in text_of(outcome.content)


@pytest.mark.parametrize(
    ("config", "arguments", "count"),
    [
        ({}, {}, 3),
        ({"max_results": 5}, {}, 5),
        ({"max_results": 5}, {"max_results": 2}, 2),
        ({"max_results": 99}, {}, 20),
    ],
)
async def test_the_number_of_results_is_configured(
    make: Make, config: dict[str, Any], arguments: dict[str, Any], count: int
) -> None:
    outcome = await search(make(), config=config, arguments=arguments)

    assert len(json.loads(text_of(outcome.content))["top_k"]) == count


async def test_the_callers_key_goes_before_the_servers(make: Make, engine: str) -> None:
    provider_data: dict[str, Any] = {f"{engine}_search_api_key": KEYS[engine]}

    assert not (await search(make("wrong"), **provider_data)).error


async def test_a_key_may_be_looked_up(make: Make, engine: str) -> None:
    assert not (await search(make(lambda: KEYS[engine]))).error


@pytest.mark.parametrize("key", [None, "", lambda: None])
async def test_without_a_key_caller_and_operator_are_told_where_to_put_one(
    make: Make, engine: str, key: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ToolUnavailable, match=f'{{"{engine}_search_api_key": "..."}}') as refused:
        await search(make(key))

    assert f"The operator sets {engine.upper()}_SEARCH_API_KEY (in AWS" in refused.value.message
    assert "the parameter ToolsSecretArn" in refused.value.message
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        refused.value.message
    ]


async def test_an_engine_that_only_the_agent_chose_needs_a_setting_too(guard: Guard) -> None:
    tool = WebSearch(Tavily(guard), "the key of Tavily", {"brave": Brave(guard)})
    invocation = Invocation("web_search", {"query": "tea", "engine": "brave"}, "c", fixed=frozenset({"engine"}))

    with pytest.raises(ToolUnavailable, match="sets STINT_WEB_SEARCH=brave and BRAVE_SEARCH_API_KEY "):
        await tool.invoke(group(), invocation)


async def test_a_wrong_key_is_unavailable_and_not_repeated(make: Make) -> None:
    with pytest.raises(ToolUnavailable, match="refused the API key") as caught:
        await search(make("s3cret-and-wrong"))

    assert "s3cret" not in caught.value.message


async def test_a_refused_query_is_an_outcome_in_the_services_words_without_the_key(make: Make, engine: str) -> None:
    outcome = await search(make(), "x" * 401)

    assert outcome.error
    assert {"brave": "Unable to validate", "tavily": "Query is too long"}[engine] in text_of(outcome.content)
    assert KEYS[engine] not in text_of(outcome.content)


@pytest.mark.parametrize("query", ["", "  ", None, 7, ["tea"]])
async def test_a_query_that_is_no_text_is_an_outcome(make: Make, query: Any) -> None:
    outcome = await search(make(), query)

    assert outcome.error
    assert '"query" must be a string' in text_of(outcome.content)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"web": {"results": 1}, "results": 1}', b'"x"'])
async def test_a_malformed_answer_is_an_outcome(make: Make, service: ScriptedHTTPServer, body: bytes) -> None:
    service.script(Reply((body,)))

    assert (await search(make())).error


async def test_a_service_that_throttles_is_an_outcome(make: Make, service: ScriptedHTTPServer) -> None:
    service.script(Reply((b"slow down",), 429))

    outcome = await search(make())

    assert outcome.error
    assert "429: slow down" in text_of(outcome.content)


async def test_a_service_that_is_silent_is_timed_out(make: Make, service: ScriptedHTTPServer) -> None:
    service.script(Reply(ending="hang"))

    outcome = await search(make(timeout=0.3))

    assert outcome.error
    assert "within 0.3 s" in text_of(outcome.content)


async def test_a_service_that_is_not_there_is_unavailable(guard: Guard) -> None:
    with pytest.raises(ToolUnavailable, match="cannot be reached"):
        await search(WebSearch(Tavily(guard, base_url="http://127.0.0.1:1"), "key"))


async def test_nothing_found_is_an_empty_list(guard: Guard) -> None:
    with ScriptedHTTPServer(brave.answer) as server:
        outcome = await search(WebSearch(Brave(guard, base_url=f"{server.url}/res/v1"), brave.KEY), "nothing")

    assert json.loads(text_of(outcome.content)) == {"query": "nothing", "top_k": []}
