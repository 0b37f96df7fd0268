"""Agents of the `openai-agents` package, unmodified, against `make run`."""

from collections.abc import AsyncIterator

import pytest
from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
)
from agents.memory.openai_responses_compaction_session import OpenAIResponsesCompactionMode
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel
from tests.system.run_process import Run

QUIET = RunConfig(tracing_disabled=True)
# The second round is the second agent's: the scripted model follows the same words again.
HANDED_OVER = "Please transfer_to_weather_agent, then get_weather city=Bern\nrepeat: 2"


class Sum(BaseModel):
    a: int
    b: int


@function_tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


TOOL: FunctionTool = get_weather


@pytest.fixture
async def client(responses_run: Run) -> AsyncIterator[AsyncOpenAI]:
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=f"{responses_run.url}/v1", api_key="key", http_client=http) as client:
        yield client


@pytest.fixture
def model(client: AsyncOpenAI) -> OpenAIResponsesModel:
    return OpenAIResponsesModel(model="scripted/demo", openai_client=client)


@pytest.fixture
def triage(model: OpenAIResponsesModel) -> Agent[None]:
    weather = Agent[None](name="Weather agent", instructions="Tell the weather.", model=model, tools=[TOOL])
    return Agent[None](name="Triage", instructions="Hand over to who knows.", model=model, handoffs=[weather])


async def test_an_agent_calls_its_tool(model: OpenAIResponsesModel) -> None:
    agent = Agent[None](name="Weather", instructions="Tell the weather.", model=model, tools=[TOOL])

    result = await Runner.run(agent, "Please get_weather of Bern", run_config=QUIET)

    assert result.final_output == "get_weather answered: rain in Bern"
    assert len(result.raw_responses) == 2
    assert all(response.usage.total_tokens > 0 for response in result.raw_responses)


async def test_a_streamed_run_hands_over_to_an_agent_that_calls_a_tool(triage: Agent[None]) -> None:
    result = Runner.run_streamed(triage, HANDED_OVER, run_config=QUIET)

    items: list[str] = []
    text = ""
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            items.append(event.item.type)
        elif event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta

    assert items == [
        "handoff_call_item",
        "handoff_output_item",
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]
    assert result.last_agent.name == "Weather agent"
    assert result.final_output == text == "get_weather answered: rain in Bern"


async def test_a_run_leaves_its_state_to_the_server(triage: Agent[None]) -> None:
    result = await Runner.run(triage, HANDED_OVER, run_config=QUIET, auto_previous_response_id=True)

    assert result.final_output == "get_weather answered: rain in Bern"
    assert result.last_response_id


async def test_a_session_is_a_conversation(model: OpenAIResponsesModel, client: AsyncOpenAI) -> None:
    agent = Agent[None](name="Weather", model=model, tools=[TOOL])
    session = OpenAIConversationsSession(openai_client=client)

    await Runner.run(agent, "Please get_weather of Bern", session=session, run_config=QUIET)
    second = await Runner.run(agent, "And so?", session=session, run_config=QUIET)
    items = await session.get_items()
    await session.clear_session()

    assert second.final_output == "You said: And so?"  # without the introduction of a first answer
    assert [item.get("type", "message") for item in items] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
        "message",
        "message",
    ]


@pytest.mark.parametrize("mode", ["input", "previous_response_id"])
async def test_a_session_is_compacted(
    model: OpenAIResponsesModel, client: AsyncOpenAI, mode: OpenAIResponsesCompactionMode
) -> None:
    alias = {"model_id": "gpt-demo", "provider_model_id": "scripted/demo"}
    await client.post("/models", body=alias, cast_to=object)
    agent = Agent[None](name="Weather", model=model, tools=[TOOL])
    stored = SQLiteSession("weather")
    session = OpenAIResponsesCompactionSession(
        "weather",
        stored,
        client=client,
        model="gpt-demo",  # the session takes no model whose name does not begin with gpt
        compaction_mode=mode,
        should_trigger_compaction=lambda _: True,
    )

    await Runner.run(agent, "Please get_weather of Bern", session=session, run_config=QUIET)
    kept = await session.get_items()
    second = await Runner.run(agent, "say: And so on", session=session, run_config=QUIET)
    stored.close()

    assert "compaction" in [item.get("type") for item in kept]
    assert "function_call" not in [item.get("type") for item in kept]
    assert second.final_output == "And so on"


async def test_an_agent_answers_with_a_type(model: OpenAIResponsesModel) -> None:
    settings = ModelSettings(temperature=0.2, store=False)
    agent = Agent[None](name="Adder", model=model, output_type=Sum, model_settings=settings)

    result = await Runner.run(agent, "Add 3 and 4", run_config=QUIET)

    assert result.final_output == Sum(a=3, b=4)
