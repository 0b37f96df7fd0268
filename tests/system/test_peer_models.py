"""One Stint as the model server of another one, by the Responses API, with the unmodified clients."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from openai import APIStatusError, BadRequestError, NotFoundError, RateLimitError
from tests.openresponses.peer_wire import Cut, Refusal
from tests.servers.chat_completions import error, stream, words
from tests.system.peers import Peers, running_mcp_server, running_peers
from tests.system.test_openai_client import WEATHER, Weather, call_of

MODEL = "peer/scripted/demo"
FIRST_TEXT = b'"response.output_text.delta"'


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peers]:
    with running_peers(tmp_path_factory.mktemp("peers")) as peers:
        yield peers


@pytest.fixture
def peers(running: Peers) -> Peers:
    running.forget()
    return running


@pytest.fixture(scope="module")
def sums() -> Iterator[Any]:
    with running_mcp_server() as url:
        yield {"type": "mcp", "server_label": "sums", "server_url": f"{url}/mcp", "require_approval": "never"}


def of_type(items: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in items if item["type"] == kind]


def reasoning_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a server needs to continue its reasoning."""
    names = ("id", "summary", "encrypted_content")
    return [{name: item[name] for name in names} for item in of_type(items, "reasoning")]


def test_text_is_streamed(peers: Peers) -> None:
    with peers.client.responses.stream(model=MODEL, input="long: 20 words", instructions="Be brief.") as events:
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        final = events.get_final_response()

    [sent] = peers.tap.requests
    assert len(deltas) > 1
    assert final.output_text == "".join(deltas) == " ".join(f"word{number}" for number in range(1, 21))
    assert (sent["model"], sent["stream"], sent["store"]) == ("scripted/demo", True, False)
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert [item["role"] for item in sent["input"]] == ["system", "user"]
    assert peers.tap.exchanges[0].route == "responses"


def test_a_function_of_the_caller_is_called_and_its_output_sent(peers: Peers) -> None:
    question = "Please get_weather of Bern"
    asked = peers.client.responses.create(model=MODEL, input=question, tools=[WEATHER])
    call = call_of(asked)
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    chained = peers.client.responses.create(
        model=MODEL, previous_response_id=asked.id, input=[output], tools=[WEATHER]
    )
    history: list[Any] = [{"role": "user", "content": question}, *asked.output, output]
    whole = peers.client.responses.create(model=MODEL, input=history, tools=[WEATHER], store=False)

    first, second, third = peers.tap.requests
    [made] = of_type(peers.answered(0), "function_call")
    assert (call.call_id, call.name, call.arguments) == (made["call_id"], "get_weather", '{"city": "Bern"}')
    assert chained.output_text == whole.output_text == "get_weather answered: rain"
    assert second["input"][: len(first["input"])] == first["input"]
    assert [(item["type"], item["call_id"]) for item in second["input"][-2:]] == [
        ("function_call", call.call_id),
        ("function_call_output", call.call_id),
    ]
    assert second["input"][-1]["output"] == "rain"
    assert third["input"] == second["input"]
    assert first["tools"] == second["tools"]


def test_a_tool_that_the_first_runs_is_a_function_of_the_second(peers: Peers, sums: Any) -> None:
    done = peers.client.responses.create(model=MODEL, input='call: add {"a": 1, "b": 2}', tools=[sums])

    first, second = peers.tap.requests
    assert [item.type for item in done.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert done.output_text == "add answered: 3"
    assert {tool["type"] for tool in first["tools"]} == {"function"}
    assert of_type(second["input"], "function_call_output")[0]["output"] == "3"


def test_reasoning_goes_back_unchanged_in_tool_rounds_and_later_responses(peers: Peers, sums: Any) -> None:
    reasoning: Any = {"effort": "low", "summary": "auto"}
    steps = 'think: Weigh it.\ncall: add {"a": 1, "b": 2}'
    asked = peers.client.responses.create(model=MODEL, input=steps, tools=[sums], reasoning=reasoning)
    later = peers.client.responses.create(
        model=MODEL, input="Sure?", previous_response_id=asked.id, reasoning=reasoning
    )

    _, second, third = peers.tap.requests
    thoughts = reasoning_of(peers.answered(0)) + reasoning_of(peers.answered(1))
    seen = [item.summary[0].text for item in asked.output if item.type == "reasoning"]
    assert seen == ["Weigh it.", "Weigh it."]
    assert [thought["summary"][0]["text"] for thought in thoughts] == seen
    assert reasoning_of(second["input"]) == thoughts[:1]
    assert reasoning_of(third["input"]) == thoughts
    assert (asked.output_text, later.output_text) == ("add answered: 3", "You said: Sure?")
    assert asked.usage and asked.usage.output_tokens_details.reasoning_tokens > 0
