"""The unmodified llama-stack-client 0.2.12, as its users use it."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import httpx2
import llama_stack_client
import openai
import pytest
from llama_stack_client import AsyncLlamaStackClient, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent, AsyncAgent
from llama_stack_client.lib.agents.client_tool import client_tool
from llama_stack_client.lib.agents.event_logger import EventLogger
from tests.api.api_client import open_session, turns_of
from tests.api.app_fixture import AppFixture, Served
from tests.api.fakes import HEARTBEAT
from tests.clock import CLOCK


@client_tool
def boiling_point(liquid: str, celsius: bool = True) -> int:
    """Return the boiling point of a liquid.

    :param liquid: the liquid's name
    :param celsius: whether in Celsius
    :returns: the boiling point
    """
    return -100 if celsius else -148


@client_tool
async def melting_point(liquid: str) -> int:
    """Return the melting point of a liquid.

    :param liquid: the liquid's name
    """
    return -114


def hello(text: str) -> Any:
    return [{"role": "user", "content": text}]


@pytest.fixture
def agent(client: LlamaStackClient) -> Agent:
    return Agent(client, model="recorded/model", instructions="Be brief.", tools=[boiling_point], max_infer_iters=5)


@pytest.fixture
async def async_client(server: Served) -> AsyncIterator[AsyncLlamaStackClient]:
    async with AsyncLlamaStackClient(
        base_url=server.url, http_client=httpx.AsyncClient(trust_env=False)
    ) as async_client:
        yield async_client


def test_an_agent_runs_its_tool_and_goes_on_streaming(agent: Agent, app_fixture: AppFixture, server: Served) -> None:
    session = agent.create_session("lab")

    chunks: list[Any] = list(agent.create_turn(hello("boiling_point of polyjuice"), session_id=session))

    kinds = [chunk.event.payload.event_type for chunk in chunks]
    assert kinds[0] == "turn_start"
    assert kinds.count("turn_awaiting_input") == 1
    assert kinds[-1] == "turn_complete"
    assert chunks[-1].event.payload.turn.output_message.content == "boiling_point answered: -100"
    assert (server.posts["turn"], server.posts["resume"]) == (1, 1)
    [tool] = app_fixture.recorder.requests[0].tools
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "liquid": {"type": "string", "description": "the liquid's name"},
            "celsius": {"type": "boolean", "description": "whether in Celsius", "default": True},
        },
        "required": ["liquid"],
    }


def test_an_agent_gives_the_whole_turn_when_it_is_not_to_stream(agent: Agent) -> None:
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(hello("boiling_point of polyjuice"), session_id=session, stream=False)

    assert turn.output_message.content == "boiling_point answered: -100"
    assert [step.step_type for step in turn.steps] == ["inference", "tool_execution", "inference"]
    assert turn.steps[1].tool_responses[0].content == "-100"


def test_several_rounds_of_tools_end_with_the_answer(agent: Agent, server: Served) -> None:
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(hello("repeat: 3\nboiling_point of polyjuice"), session_id=session, stream=False)

    assert server.posts["resume"] == 3
    assert turn.output_message.content == "boiling_point answered: -100"
    assert len(turn.steps) == 7


def test_exhausted_iterations_stop_the_client(client: LlamaStackClient, server: Served) -> None:
    agent = Agent(client, model="scripted/demo", instructions="", tools=[boiling_point], max_infer_iters=2)
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(hello("repeat: 9\nboiling_point of polyjuice"), session_id=session, stream=False)

    assert server.posts["resume"] == 1
    assert turn.status == "completed"
    assert (turn.output_message.stop_reason, turn.output_message.tool_calls) == ("end_of_turn", [])


def test_an_answer_cut_by_length_stops_the_client(agent: Agent, server: Served) -> None:
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(hello("boiling_point of polyjuice\ncut: 1 word"), session_id=session, stream=False)

    assert server.posts["resume"] == 0
    assert turn.output_message.stop_reason == "out_of_tokens"


def test_a_tool_that_fails_is_told_to_the_model(client: LlamaStackClient) -> None:
    @client_tool
    def broken(part: str) -> str:
        """Breaks.

        :param part: what breaks
        """
        raise ValueError(f"{part} broke")

    agent = Agent(client, model="scripted/demo", instructions="", tools=[broken])
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(hello("broken axle"), session_id=session, stream=False)

    assert turn.output_message.content == "broken answered: Error when running tool: axle broke"


def test_the_event_logger_prints_a_turn(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    session = agent.create_session("lab")

    for event in EventLogger().log(agent.create_turn(hello("boiling_point of polyjuice"), session_id=session)):  # type: ignore[arg-type]  # the stream of a turn it is
        event.print()

    printed = capsys.readouterr().out
    assert "inference>" in printed
    assert "tool_execution> Tool:boiling_point Args:{'liquid': 'polyjuice'" in printed
    assert "tool_execution> Tool:boiling_point Response:-100" in printed
    assert "boiling_point answered: -100" in printed


def test_the_event_logger_prints_a_failure(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    session = agent.create_session("lab")

    for event in EventLogger().log(agent.create_turn(hello("fail: before"), session_id=session)):  # type: ignore[arg-type]  # the stream of a turn it is
        event.print()

    assert "The scripted model failed before its first word" in capsys.readouterr().out


def test_a_failed_turn_raises_its_message(agent: Agent) -> None:
    session = agent.create_session("lab")

    with pytest.raises(RuntimeError, match=r"Turn did not complete\. Error: The scripted model failed before"):
        agent.create_turn(hello("fail: before"), session_id=session, stream=False)


async def test_an_async_agent_runs_its_tool(async_client: AsyncLlamaStackClient) -> None:
    tools: Any = [melting_point]
    agent = AsyncAgent(async_client, model="scripted/demo", instructions="", tools=tools)  # type: ignore[arg-type]  # its annotation names the other client
    session = await agent.create_session("lab")

    stream: Any = await agent.create_turn(hello("melting_point of ethanol"), session_id=session)
    chunks = [chunk async for chunk in stream]
    whole: Any = await agent.create_turn(hello("melting_point of ethanol"), session_id=session, stream=False)

    assert chunks[-1].event.payload.turn.output_message.content == "melting_point answered: -114"
    assert whole.output_message.content == "melting_point answered: -114"


def test_what_was_said_is_read_back_and_deleted(client: LlamaStackClient, agent: Agent, http: httpx.Client) -> None:
    session = agent.create_session("lab")
    turns: list[Any] = [
        agent.create_turn(hello(text), session_id=session, stream=False) for text in ("say: one", "boiling_point of x")
    ]
    place: dict[str, Any] = {"agent_id": agent.agent_id, "session_id": session}
    last = turns[1]

    whole = client.agents.session.retrieve(**place)
    some = client.agents.session.retrieve(**place, turn_ids=[last.turn_id])
    turn = client.agents.turn.retrieve(**place, turn_id=last.turn_id)
    step = client.agents.steps.retrieve(**place, turn_id=last.turn_id, step_id=last.steps[1].step_id)

    assert [each.turn_id for each in whole.turns] == [each.turn_id for each in turns]
    assert [each.turn_id for each in some.turns] == [last.turn_id]
    assert turn == last
    assert step.step == last.steps[1]
    assert len(turns_of(http, f"/v1/agents/{agent.agent_id}/session/{session}")) == 2
    client.agents.session.delete(**place)
    with pytest.raises(llama_stack_client.NotFoundError):
        client.agents.session.retrieve(**place)
    client.agents.delete(agent.agent_id)
    with pytest.raises(llama_stack_client.NotFoundError):
        client.agents.delete(agent.agent_id)


def test_turns_without_a_stream_and_their_resume(client: LlamaStackClient) -> None:
    tools: Any = [boiling_point.get_tool_definition()]
    config: Any = {"model": "scripted/demo", "instructions": "", "client_tools": tools}
    agent_id = client.agents.create(agent_config=config).agent_id
    session_id = client.agents.session.create(agent_id, session_name="lab").session_id
    place: dict[str, Any] = {"agent_id": agent_id, "session_id": session_id}

    paused = client.agents.turn.create(**place, messages=hello("boiling_point of x"), stream=False)
    [call] = paused.output_message.tool_calls
    answers: Any = [{"call_id": call.call_id, "tool_name": call.tool_name, "content": "7"}]
    done = client.agents.turn.resume(paused.turn_id, **place, tool_responses=answers, stream=False)

    assert paused.output_message.stop_reason == "end_of_message"
    assert done.turn_id == paused.turn_id
    assert done.output_message.content == "boiling_point answered: 7"


def test_an_agent_with_an_unknown_toolgroup_is_refused_when_it_is_made(client: LlamaStackClient) -> None:
    with pytest.raises(llama_stack_client.NotFoundError, match="mcp::nowhere"):
        Agent(client, model="scripted/demo", instructions="", tools=["mcp::nowhere"])


def test_the_registry_is_read(client: LlamaStackClient) -> None:
    models, providers = client.models.list(), client.providers.list()

    assert [(model.identifier, model.provider_id, model.api_model_type) for model in models] == [
        ("scripted/demo", "scripted", "llm"),
        ("hashed/words-384", "hashed", "embedding"),
        ("demo", "scripted", "llm"),
        ("words-384", "hashed", "embedding"),
        ("all-MiniLM-L6-v2", "hashed", "embedding"),
    ]
    assert client.models.retrieve("scripted/demo").identifier == "scripted/demo"
    assert [provider.provider_id for provider in providers if provider.api == "inference"] == [
        "scripted",
        "openai",
        "bedrock",
        "hashed",
    ]
    assert client.providers.retrieve("scripted").health == {"status": "OK"}
    names = ["web_search", "wolfram_alpha", "knowledge_search", "photogen"]
    assert [tool.identifier for tool in client.tools.list()] == names
    assert [group.identifier for group in client.toolgroups.list()] == [
        "builtin::websearch",
        "builtin::wolfram_alpha",
        "builtin::rag",
        "builtin::photogen",
    ]
    assert client.shields.list() == []
    assert client.inspect.health().status == "OK"
    assert client.inspect.version().version == "0.2.12"
    assert ("/v1/agents", "POST") in [(route.route, route.method) for route in client.routes.list()]
    for retrieve, name in (
        (client.models.retrieve, "no/such"),
        (client.tools.get, "nothing"),
        (client.toolgroups.get, "mcp::nothing"),
        (client.shields.retrieve, "nothing"),
        (client.providers.retrieve, "nothing"),
    ):
        with pytest.raises(llama_stack_client.NotFoundError, match=name):
            retrieve(name)


def release(app_fixture: AppFixture) -> None:
    """Let the model `faulty/gated` speak after the silence of a few heartbeats."""
    for _ in range(9):
        time.sleep(0.1)
        CLOCK.move(HEARTBEAT / 3)
    app_fixture.faulty.silence.set()


async def test_numbered_events_and_heartbeats_between_them_are_read(
    async_client: AsyncLlamaStackClient, app_fixture: AppFixture
) -> None:
    config: Any = {"model": "faulty/gated", "instructions": "Be brief."}
    agent_id = (await async_client.agents.create(agent_config=config)).agent_id
    session_id = (await async_client.agents.session.create(agent_id, session_name="lab")).session_id
    releasing = asyncio.create_task(asyncio.to_thread(release, app_fixture))

    stream = await async_client.agents.turn.create(session_id, agent_id=agent_id, messages=hello("Hello"), stream=True)
    kinds = [chunk.event.payload.event_type async for chunk in stream]

    assert kinds == ["turn_start", "step_start", "step_progress", "step_complete", "turn_complete"]
    await releasing


def test_a_rejoined_stream_is_read_by_the_streams_of_both_clients(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="faulty/gated")
    found: dict[str, list[Any]] = {"llama_stack": [], "openai": []}
    with http.stream("POST", f"{session}/turn", json={"messages": hello("Hello"), "stream": True}) as running:
        lines = running.iter_lines()
        next(lines)
        turn_id = json.loads(next(lines)[6:])["event"]["payload"]["turn_id"]
        path = f"{session}/turn/{turn_id}/events"
        openai_client = openai.OpenAI(base_url=server.url, api_key="none", http_client=httpx2.Client(trust_env=False))
        streams: dict[str, Any] = {
            "llama_stack": client.get(path, cast_to=object, stream=True, stream_cls=llama_stack_client.Stream[object]),
            "openai": openai_client.get(path, cast_to=object, stream=True, stream_cls=openai.Stream[object]),
        }
        readers = [threading.Thread(target=lambda name=name: found[name].extend(streams[name])) for name in streams]
        for reader in readers:
            reader.start()
        release(app_fixture)
        for reader in readers:
            reader.join()
        openai_client.close()

    kinds = ["turn_start", "step_start", "step_progress", "step_complete", "turn_complete"]
    assert [event["event"]["payload"]["event_type"] for event in found["llama_stack"]] == kinds
    assert found["openai"] == found["llama_stack"]
