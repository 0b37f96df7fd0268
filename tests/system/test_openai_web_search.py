"""The hosted web search, for the `openai` package and for `openai-agents`."""

import json
from typing import Any

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, WebSearchTool
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAI
from tests.servers import tavily
from tests.system.run_process import Run

MODEL = "scripted/demo"
KEYS = {"X-LlamaStack-Provider-Data": json.dumps({"tavily_search_api_key": tavily.KEY})}
QUESTION = "Please web_search for tea"


def test_the_server_searches_and_tells_its_sources(openai_client: OpenAI) -> None:
    response = openai_client.responses.create(
        model=MODEL,
        input=QUESTION,
        tools=[{"type": "web_search"}],
        include=["web_search_call.action.sources"],
        extra_headers=KEYS,
    )

    output: list[Any] = list(response.output)
    search, answer = output
    assert (search.type, search.status, search.action.query) == ("web_search_call", "completed", "tea")
    assert "https://example.com/1" in [source.url for source in search.action.sources]
    assert answer.type == "message"


def test_the_stream_helper_follows_the_search(openai_client: OpenAI) -> None:
    tools: Any = [{"type": "web_search"}]
    with openai_client.responses.stream(model=MODEL, input=QUESTION, tools=tools, extra_headers=KEYS) as stream:
        names = [event.type for event in stream]
        final = stream.get_final_response()

    assert [name for name in names if name.startswith("response.web_search_call.")] == [
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
    ]
    assert [item.type for item in final.output] == ["web_search_call", "message"]


async def test_an_agent_searches(responses_run: Run) -> None:
    http = DefaultAsyncHttpxClient(trust_env=False)
    url = f"{responses_run.url}/v1"
    async with AsyncOpenAI(base_url=url, api_key="key", http_client=http, default_headers=KEYS) as client:
        model = OpenAIResponsesModel(model=MODEL, openai_client=client)
        agent = Agent[None](name="Searcher", model=model, tools=[WebSearchTool()])

        result = await Runner.run(agent, QUESTION, run_config=RunConfig(tracing_disabled=True))

    assert "About tea 1" in result.final_output
