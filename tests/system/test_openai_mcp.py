"""Tools of an MCP server that the server itself calls, for the `openai` package and for `openai-agents`."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from agents import Agent, HostedMCPTool, OpenAIResponsesModel, RunConfig, Runner
from infra.local.engine import ROOT
from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI
from openai.types.responses.tool_param import Mcp
from tests.system.run_process import Run

MODEL = "scripted/demo"


@pytest.fixture(scope="module")
def mcp_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.communicate()


def hosted(url: str, **other: Any) -> Mcp:
    tool: Any = {"type": "mcp", "server_label": "sums", "server_url": f"{url}/mcp", "require_approval": "never"}
    merged: Mcp = tool | other
    return merged


def test_the_server_lists_and_calls_the_tools(openai_client: OpenAI, mcp_url: str) -> None:
    response = openai_client.responses.create(model=MODEL, input="Please add a=1 b=2", tools=[hosted(mcp_url)])

    output: list[Any] = list(response.output)
    listed, call, answer = output
    assert (listed.type, call.type, answer.type) == ("mcp_list_tools", "mcp_call", "message")
    assert "add" in [tool.name for tool in listed.tools]
    assert (call.name, call.arguments, call.output, call.error) == ("add", '{"a": 1, "b": 2}', "3", None)
    assert response.output_text == "add answered: 3"


def test_the_stream_helper_follows_the_calls(openai_client: OpenAI, mcp_url: str) -> None:
    tools = [hosted(mcp_url, allowed_tools=["add"])]
    with openai_client.responses.stream(model=MODEL, input="Please add a=1 b=2", tools=tools) as stream:
        names = [event.type for event in stream]
        final = stream.get_final_response()

    assert [name for name in names if name.startswith("response.mcp_")] == [
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.mcp_call.in_progress",
        *(name for name in names if name == "response.mcp_call_arguments.delta"),
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
    ]
    assert final.output_text == "add answered: 3"


@pytest.mark.parametrize(("approve", "types"), [(True, ["mcp_call", "message"]), (False, ["message"])])
def test_a_call_waits_for_approval(openai_client: OpenAI, mcp_url: str, approve: bool, types: list[str]) -> None:
    tools = [hosted(mcp_url, require_approval="always")]
    asked = openai_client.responses.create(model=MODEL, input="Please add a=1 b=2", tools=tools)
    request: Any = asked.output[-1]

    answered = openai_client.responses.create(
        model=MODEL,
        previous_response_id=asked.id,
        input=[{"type": "mcp_approval_response", "approval_request_id": request.id, "approve": approve}],
        tools=tools,
    )

    assert (request.type, request.name, request.arguments) == ("mcp_approval_request", "add", '{"a": 1, "b": 2}')
    assert [item.type for item in answered.output if item.type != "mcp_list_tools"] == types


def test_credentials_reach_the_server_and_nobody_else(openai_client: OpenAI, mcp_url: str) -> None:
    tool = hosted(mcp_url, server_url=f"{mcp_url}/private/mcp", authorization="right-token")
    text = "Please call header name=authorization"

    response = openai_client.responses.create(model=MODEL, input=text, tools=[tool])
    stored = openai_client.responses.retrieve(response.id)

    assert "***" in response.output_text  # the tool repeats what it was sent
    assert "right-token" not in str([response.to_dict(), stored.to_dict()])


def test_a_server_that_is_not_there_is_named(openai_client: OpenAI) -> None:
    with pytest.raises(APIStatusError, match=r"127\.0\.0\.1:9 cannot be reached"):
        openai_client.responses.create(model=MODEL, input="Add", tools=[hosted("http://127.0.0.1:9")])


async def test_an_agent_has_hosted_tools(responses_run: Run, mcp_url: str) -> None:
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=f"{responses_run.url}/v1", api_key="key", http_client=http) as client:
        model = OpenAIResponsesModel(model=MODEL, openai_client=client)
        tools: list[Any] = [HostedMCPTool(tool_config=hosted(mcp_url))]
        agent = Agent[None](name="Adder", model=model, tools=tools)

        result = await Runner.run(agent, "Please add a=1 b=2", run_config=RunConfig(tracing_disabled=True))

    assert result.final_output == "add answered: 3"


def test_a_request_is_merged_into_the_running_response(responses_run: Run, mcp_url: str) -> None:
    """The requests are in different processes."""
    http = DefaultHttpxClient(trust_env=False)
    with (
        OpenAI(base_url=f"{responses_run.url}/v1", api_key="key", http_client=http) as client,
        ThreadPoolExecutor() as pool,
    ):
        warm = pool.map(lambda _: client.responses.create(model=MODEL, input="slow: 1", store=False), range(3))
        conversation = client.conversations.create().id
        assert len([*warm]) == 3  # the function has three processes
        merge: Any = {"conversation": conversation, "model": MODEL, "extra_body": {"when_busy": "merge"}}
        begun = threading.Event()

        def run(**fields: Any) -> tuple[list[tuple[str, int]], Any]:
            with client.responses.stream(**fields) as stream:
                events: list[tuple[str, int]] = []
                for event in stream:
                    events.append((event.type, event.sequence_number))
                    if event.type == "response.mcp_call.in_progress":
                        begun.set()
                return events, stream.get_final_response()

        first = pool.submit(run, input='call: sleep {"seconds": 3}', tools=[hosted(mcp_url)], **merge)
        assert begun.wait(60)
        streamed = pool.submit(run, input="and two", **merge)
        whole = client.responses.create(input="and three", **merge)
        (events, response), (others, merged) = first.result(60), streamed.result(60)

        assert (merged.id, whole.id, others) == (response.id, response.id, events)
        assert client.responses.retrieve(merged.id).output == whole.output
        items = [getattr(item, "content", None) for item in client.responses.input_items.list(merged.id, order="asc")]
        said = [content[0].text for content in items if content]
        assert (said[0], sorted(said[1:])) == ('call: sleep {"seconds": 3}', ["and three", "and two"])
        kinds = [item.type for item in client.conversations.items.list(conversation, order="asc")]
        assert kinds == ["message", "mcp_list_tools", "mcp_call", *["message"] * 3]
