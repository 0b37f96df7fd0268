"""Tools, shields and documents through the whole system, with the unmodified client library."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import llama_stack_client
import pytest
from infra.local.engine import ROOT
from llama_stack_client import AsyncLlamaStackClient, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from llama_stack_client.lib.agents.client_tool import client_tool
from tests.servers.mcp_server import TOKEN
from tests.system.run_process import Run, all_end
from tests.unit.documents.pdf_files import make_pdf

LAMBDA_TOOLS: dict[str, Any] = {
    "tools": [
        {
            "name": "boiling_point",
            "description": "Boiling point of a liquid.",
            "parameters": {"type": "object", "properties": {"liquid": {"type": "string"}}, "required": ["liquid"]},
            "function": "get-boiling-point",
        }
    ]
}
ALL_AT_ONCE = """call: add {"a": 2, "b": 3}
call: total {"numbers": [1, 2, 4]}
call: boiling_point {"liquid": "polyjuice"}
call: ask_user {"question": "sure?"}"""


@client_tool
def ask_user(question: str) -> str:
    """Ask the user.

    :param question: what to ask
    """
    return f"yes to {question}"


@pytest.fixture(scope="module")
def mcp() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    run = Run(tmp_path_factory.mktemp("tools") / "state", 0, shell={"STINT_SCRIPTED_WORD_SECONDS": "0"})
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


@pytest.fixture(scope="module")
def client(run: Run, mcp: str) -> LlamaStackClient:
    client = LlamaStackClient(base_url=run.url)
    for name, path in (("mcp::one", "/mcp"), ("mcp::two", "/sse"), ("mcp::private", "/private/mcp")):
        client.toolgroups.register(
            toolgroup_id=name, provider_id="model-context-protocol", mcp_endpoint={"uri": f"{mcp}{path}"}
        )
    client.toolgroups.register(toolgroup_id="lab", provider_id="lambda-function", args=LAMBDA_TOOLS)
    return client


def make_agent(client: LlamaStackClient) -> Any:
    tools: Any = ["mcp::one/add", "mcp::two/total", "lab", ask_user]
    return Agent(client, model="scripted/demo", instructions="", tools=tools, enable_session_persistence=True)


def results(turn: Any) -> dict[str, Any]:
    steps = [step for step in turn.steps if step.step_type == "tool_execution"]
    return {step.tool_responses[0].tool_name: step.tool_responses[0].content for step in steps}


def check(turn: Any) -> None:
    found = results(turn)
    assert list(found) == ["add", "total", "boiling_point", "ask_user"]
    assert "5" in str(found["add"])
    assert "7" in str(found["total"])
    assert json.loads(str(found["boiling_point"]))["boiling_point"] == -100
    assert found["ask_user"] == '"yes to sure?"'
    assert turn.output_message.stop_reason == "end_of_turn"


def test_two_mcp_servers_a_lambda_tool_and_a_client_tool_at_once_streamed(client: LlamaStackClient) -> None:
    agent = make_agent(client)
    session_id = agent.create_session("all at once")

    chunks = list(agent.create_turn([{"role": "user", "content": ALL_AT_ONCE}], session_id=session_id))

    check(chunks[-1].event.payload.turn)
    kinds = [chunk.event.payload.event_type for chunk in chunks]
    assert (kinds[0], kinds[-1]) == ("turn_start", "turn_complete")
    assert kinds.count("turn_awaiting_input") == 1
    stored = client.agents.session.retrieve(session_id, agent_id=agent.agent_id)
    check(stored.turns[0])


def test_the_same_not_streamed_after_the_process_was_killed_in_the_pause(client: LlamaStackClient, run: Run) -> None:
    agent = make_agent(client)
    place: Any = {"agent_id": agent.agent_id, "session_id": agent.create_session("killed")}
    messages: Any = [{"role": "user", "content": ALL_AT_ONCE}]

    paused = client.agents.turn.create(**place, messages=messages, stream=False)
    assert kill_streaming_functions(run)
    responses: Any = [ask_user.run([paused.output_message])]
    done = client.agents.turn.resume(paused.turn_id, **place, tool_responses=responses, stream=False)

    assert paused.output_message.stop_reason == "end_of_message"
    assert [call.tool_name for call in paused.output_message.tool_calls] == ["ask_user"]
    assert list(results(paused)) == ["add", "total", "boiling_point"]
    check(done)


def kill_streaming_functions(run: Run) -> int:
    """Kill -9 the function processes of this run that stream; tell how many there were."""
    table = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    doomed = [int(pid) for pid, parent, args in rows if int(parent) == run.process.pid and "stint_runtime" in args]
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    assert all_end(set(doomed), within=10)
    return len(doomed)


def test_tools_are_listed_and_invoked_through_the_client(client: LlamaStackClient) -> None:
    listed = [tool.identifier for tool in client.tools.list(toolgroup_id="mcp::one/add")]
    invoked = client.tool_runtime.invoke_tool(tool_name="boiling_point", kwargs={"liquid": "water"})

    assert listed == ["add"]
    assert {"add", "order", "total"} <= {tool.identifier for tool in client.tools.list(toolgroup_id="mcp::two")}
    assert json.loads(str(invoked.content))["boiling_point"] == 100
    assert "mcp::two" in [group.identifier for group in client.toolgroups.list()]
    assert client.toolgroups.get("lab").provider_id == "lambda-function"


async def test_the_async_clients_form_of_a_toolgroup_with_args_is_understood(
    client: LlamaStackClient, run: Run
) -> None:
    async with AsyncLlamaStackClient(base_url=run.url) as asynchronous:
        listed = await asynchronous.tools.list(extra_query={"toolgroup_id[name]": "mcp::one/add"})

    assert [tool.identifier for tool in listed] == ["add"]


def test_a_callers_credentials_open_an_mcp_server_and_are_kept_nowhere(
    client: LlamaStackClient, run: Run, mcp: str
) -> None:
    endpoint = f"{mcp}/private/mcp"

    def keys(token: str) -> dict[str, str]:
        data = {"mcp_headers": {endpoint: {"Authorization": token}}}
        return {"X-LlamaStack-Provider-Data": json.dumps(data)}

    agent = Agent(client, model="scripted/demo", instructions="", tools=["mcp::private/add"], extra_headers=keys(TOKEN))
    session_id = agent.create_session("private")
    message: Any = [{"role": "user", "content": 'call: add {"a": 20, "b": 3}'}]
    turn: Any = agent.create_turn(message, session_id=session_id, stream=False)

    assert "23" in str(results(turn)["add"])
    with pytest.raises(llama_stack_client.AuthenticationError, match=r"credentials") as refused:
        client.agents.turn.create(
            agent_id=agent.agent_id,
            session_id=session_id,
            messages=message,
            stream=True,
            extra_headers=keys("Bearer wrong-token"),
        )
    assert refused.value.status_code == 401
    written = [path.read_bytes() for path in Path(run.state).rglob("*") if path.is_file()]
    assert not any(b"right-token" in text or b"wrong-token" in text for text in written)


def test_what_an_output_shield_blocks_is_in_no_event(client: LlamaStackClient, run: Run) -> None:
    client.shields.register(shield_id="words", provider_id="deny-list", params={"phrases": ["dynamite"]})
    config: Any = {"model": "scripted/demo", "instructions": "", "output_shields": ["words"]}
    agent_id = client.agents.create(agent_config=config).agent_id
    session_id = client.agents.session.create(agent_id, session_name="s").session_id
    body = {"messages": [{"role": "user", "content": "say: take some dyna\u200bmite now"}], "stream": True}

    stream = httpx.post(f"{run.url}/v1/agents/{agent_id}/session/{session_id}/turn", json=body, timeout=120).text

    payloads = [json.loads(line)["event"]["payload"] for line in re.findall(r"^data: (.*)$", stream, re.MULTILINE)]
    assert [payload["event_type"] for payload in payloads if payload["event_type"] == "step_progress"] == []
    final = payloads[-1]["turn"]
    assert (final["status"], final["output_message"]["stop_reason"]) == ("completed", "end_of_turn")
    assert "take some" not in json.dumps([payload.get("step_details") for payload in payloads])
    asked: Any = [{"role": "user", "content": "dynamite"}]
    violation = client.safety.run_shield(shield_id="words", messages=asked, params={}).violation
    assert violation is not None
    assert violation.violation_level == "error"


def test_documents_come_from_allowed_places_only(client: LlamaStackClient, mcp: str) -> None:
    agent = make_agent(client)
    place: Any = {"agent_id": agent.agent_id, "session_id": agent.create_session("documents")}
    hello: Any = [{"role": "user", "content": "hello"}]

    def ask(uri: str) -> Any:
        documents: Any = [{"content": {"uri": uri}, "mime_type": "application/json"}]
        return client.agents.turn.create(**place, messages=hello, documents=documents, stream=False)

    assert ask(f"{mcp}/stats").status == "completed"
    with pytest.raises(llama_stack_client.BadRequestError, match=r"documents\[0\]"):
        ask("http://169.254.169.254/latest/meta-data/")


def test_a_pdf_is_read_by_a_process_of_the_function(client: LlamaStackClient) -> None:
    agent = make_agent(client)
    place: Any = {"agent_id": agent.agent_id, "session_id": agent.create_session("papers")}
    hello: Any = [{"role": "user", "content": "hello"}]

    def ask(*pages: str) -> Any:
        paper = base64.b64encode(make_pdf(*pages)).decode()
        documents: Any = [{"content": {"uri": f"data:application/pdf;base64,{paper}"}, "mime_type": ""}]
        return client.agents.turn.create(**place, messages=hello, documents=documents, stream=False)

    assert ask("Ants march.").status == "completed"
    with pytest.raises(llama_stack_client.BadRequestError, match=r"documents\[0\]: the PDF has no text"):
        ask("")
