"""llama-stack-client's agents that read calls out of the model's text: ReActAgent, and any with a tool parser."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import AsyncLlamaStackClient, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent, AsyncAgent
from llama_stack_client.lib.agents.client_tool import client_tool
from llama_stack_client.lib.agents.react.agent import ReActAgent
from llama_stack_client.lib.agents.tool_parser import ToolParser
from llama_stack_client.types.shared.tool_call import ToolCall
from tests.api.api_client import turns_of
from tests.api.app_fixture import Served
from tests.api.sequences import says
from tests.api.test_client import boiling_point, hello, melting_point
from tests.servers.chat_completions import ChatCompletionsServer, find_fault


@client_tool
def freezing_point(liquid: str) -> int:
    """Return the freezing point of a liquid.

    :param liquid: the liquid's name
    """
    return -101


def thought(tool: str | None = None, answer: str | None = None, **params: Any) -> str:
    """A model's message to a ReAct agent: an action, or the answer."""
    given = [{"name": name, "value": value} for name, value in (params or {"liquid": "polyjuice"}).items()]
    action = {"tool_name": tool, "tool_params": given} if tool else None
    return json.dumps({"thought": "So.", "action": action, "answer": answer})


@pytest.fixture
def strict(chat: ChatCompletionsServer) -> Iterator[ChatCompletionsServer]:
    """The chat-completions server; it was sent nothing that OpenAI would refuse."""
    yield chat
    assert [find_fault(body) for body in chat.bodies] == [None] * len(chat.bodies)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("json_format", [True, False])
def test_a_react_agent_acts_until_it_has_the_answer(
    client: LlamaStackClient, http: httpx.Client, strict: ChatCompletionsServer, stream: bool, json_format: bool
) -> None:
    strict.script(
        says(thought("boiling_point")),
        says(thought("freezing_point")),
        says(thought(answer="-100 and -101")),
        says(thought(answer="You are welcome.")),
    )
    agent = ReActAgent(
        client, model="openai/m", tools=[boiling_point, freezing_point], json_response_format=json_format
    )
    session = agent.create_session("lab")

    told: Any = agent.create_turn(hello("both points of polyjuice"), session_id=session, stream=stream)
    done = list(told)[-1].event.payload.turn if stream else told
    after: Any = agent.create_turn(hello("thanks"), session_id=session, stream=False)

    assert json.loads(done.output_message.content)["answer"] == "-100 and -101"
    assert json.loads(after.output_message.content)["answer"] == "You are welcome."
    stored = turns_of(http, f"/v1/agents/{agent.agent_id}/session/{session}")
    assert [each["turn_id"] for each in stored] == [done.turn_id, after.turn_id]
    assert [step["step_type"] for step in stored[0]["steps"]] == ["inference", "tool_execution"] * 2 + ["inference"]
    assert [(each["role"], each["content"]) for each in strict.bodies[3]["messages"][1:]] == [
        ("user", "both points of polyjuice"),
        ("assistant", thought("boiling_point")),
        ("tool", "-100"),
        ("assistant", thought("freezing_point")),
        ("tool", "-101"),
        ("assistant", thought(answer="-100 and -101")),
        ("user", "thanks"),
    ]


def test_a_react_agent_lets_the_server_run_the_tools_of_toolgroups(
    client: LlamaStackClient, strict: ChatCompletionsServer, mcp: str
) -> None:
    strict.script(says(thought("add", a=2, b=3)), says(thought("nosuch")), says(thought(answer="5")))
    agent = ReActAgent(client, model="openai/m", tools=[mcp])
    session = agent.create_session("lab")

    done: Any = agent.create_turn(hello("2 + 3"), session_id=session, stream=False)

    assert json.loads(done.output_message.content)["answer"] == "5"
    contents = [each["content"] for each in strict.bodies[2]["messages"] if each["role"] == "tool"]
    assert contents == ["5", "Unknown tool `nosuch` was called."]


class LineParser(ToolParser):
    """Reads `CALL name {arguments}` lines; its ids count from 1 in each answer of a session."""

    def __init__(self) -> None:
        self.count = 0

    def get_tool_calls(self, output_message: Any) -> list[ToolCall]:
        found = re.findall(r"^CALL (\w+) (\{.*\})$", output_message.content, re.MULTILINE)
        return [self.call(name, arguments) for name, arguments in found]

    def call(self, name: str, arguments: str) -> ToolCall:
        self.count += 1
        return ToolCall(
            call_id=str(self.count), tool_name=name, arguments=json.loads(arguments), arguments_json=arguments
        )


CALLS = 'CALL boiling_point {"liquid": "x"}\nCALL nosuch {}'


@pytest.mark.parametrize("stream", [True, False])
def test_an_agent_with_a_tool_parser_runs_what_it_parses(
    client: LlamaStackClient, strict: ChatCompletionsServer, server: Served, stream: bool
) -> None:
    strict.script(says(CALLS), says('CALL boiling_point {"liquid": "y"}'), says("Done."), says(CALLS), says("Done."))
    agent = Agent(client, model="openai/m", instructions="", tools=[boiling_point], tool_parser=LineParser())
    session = agent.create_session("lab")

    told: Any = agent.create_turn(hello("go"), session_id=session, stream=stream)
    done = list(told)[-1].event.payload.turn if stream else told
    again: Any = agent.create_turn(hello("again"), session_id=session, stream=False)

    assert [each.output_message.content for each in (done, again)] == ["Done.", "Done."]
    assert [[each.content for each in step.tool_responses] for step in done.steps[1::2]] == [
        ["-100", "Unknown tool `nosuch` was called."],
        ["-100"],
    ]
    assert (server.posts["turn"], server.posts["resume"]) == (2, 3)


async def test_an_async_agent_with_a_tool_parser_runs_what_it_parses(
    server: Served, strict: ChatCompletionsServer
) -> None:
    call = 'CALL melting_point {"liquid": "x"}'
    strict.script(says(call), says(call), says("Done."))
    async with AsyncLlamaStackClient(
        base_url=server.url, http_client=httpx.AsyncClient(trust_env=False)
    ) as async_client:
        tools: Any = [melting_point]
        agent = AsyncAgent(
            async_client,  # type: ignore[arg-type]  # its annotation names the other client
            model="openai/m",
            instructions="",
            tools=tools,
            tool_parser=LineParser(),
        )
        session = await agent.create_session("lab")

        done: Any = await agent.create_turn(hello("go"), session_id=session, stream=False)

    assert done.output_message.content == "Done."
    assert [step.tool_responses[0].content for step in done.steps[1::2]] == ["-114", "-114"]


def test_the_scripted_model_plays_a_react_agent(client: LlamaStackClient, server: Served) -> None:
    agent = ReActAgent(client, model="scripted/demo", tools=[boiling_point], instructions="React.")
    session = agent.create_session("lab")

    turn: Any = agent.create_turn(
        hello(f"repeat: 2\nsay: {thought('boiling_point')}"), session_id=session, stream=False
    )

    assert server.posts["resume"] == 2
    assert turn.output_message.content == "boiling_point answered: -100"
