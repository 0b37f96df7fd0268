"""The unmodified clients with their default retries, behind a proxy that drops the answer of every third request."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from infra.local.engine import ROOT
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from llama_stack_client.lib.agents.client_tool import client_tool
from openai import DefaultHttpxClient, OpenAI
from tests.servers.dropping_proxy import DroppingProxy, dropping_proxy
from tests.system.run_process import Run

TURNS = RESPONSES = int(os.environ.get("TURNS", "12"))
"""12 for CI, since the behaviour does not depend on the number. `make test-retries` runs 50 of each."""

asked: Counter[str] = Counter()


@client_tool
def ask_user(question: str) -> str:
    """Ask the user.

    :param question: what to ask
    """
    asked[question] += 1
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
    run = Run(tmp_path_factory.mktemp("lost") / "state", 0, shell={"STINT_SCRIPTED_WORD_SECONDS": "0.02"})
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


@pytest.fixture
def proxy(run: Run) -> Iterator[DroppingProxy]:
    with dropping_proxy(run.url) as proxy:
        yield proxy


def count_additions(mcp: str) -> int:
    stats: dict[str, int] = httpx.get(f"{mcp}/stats", trust_env=False, timeout=120).json()
    return stats.get("add", 0)


def test_each_turn_is_there_once_and_each_of_its_tools_ran_once(run: Run, mcp: str, proxy: DroppingProxy) -> None:
    LlamaStackClient(base_url=run.url).toolgroups.register(
        toolgroup_id="mcp::one", provider_id="model-context-protocol", mcp_endpoint={"uri": f"{mcp}/mcp"}
    )
    client, before = LlamaStackClient(base_url=proxy.url), count_additions(mcp)
    agent = Agent(client, model="scripted/demo", instructions="Be brief.", tools=["mcp::one/add", ask_user])
    session = agent.create_session("lost answers")
    place: Any = {"agent_id": agent.agent_id, "session_id": session}
    texts = [add_and_ask(number) for number in range(TURNS)]

    seen = []
    for number, text in enumerate(texts):
        messages: Any = [{"role": "user", "content": text}]
        answer: Any = agent.create_turn(messages, session, stream=bool(number % 2))
        if number % 2:
            assert list(answer)[-1].event.payload.event_type == "turn_complete"
        seen.append(len(client.agents.session.retrieve(**place).turns))

    stored = LlamaStackClient(base_url=run.url).agents.session.retrieve(**place)
    assert seen == list(range(1, TURNS + 1))
    assert [str(turn.input_messages[0].content) for turn in stored.turns] == texts
    assert {turn.status for turn in stored.turns} == {"completed"}  # type: ignore[attr-defined]
    agents = httpx.get(f"{run.url}/v1/agents", trust_env=False).json()["data"]
    assert [each["agent_id"] for each in agents] == [agent.agent_id]
    assert count_additions(mcp) - before == TURNS
    assert asked == Counter(f"number {number}" for number in range(TURNS))
    assert {path.rsplit("/", 1)[-1] for path in proxy.dropped} >= {"turn", "resume"}


def add_and_ask(number: int) -> str:
    question = json.dumps({"question": f"number {number}"})
    return f'call: add {{"a": {number}, "b": 1}}\ncall: ask_user {question}'


def test_each_response_is_there_once_and_its_tool_ran_once(run: Run, mcp: str, proxy: DroppingProxy) -> None:
    before = count_additions(mcp)
    http = DefaultHttpxClient(trust_env=False)
    client = OpenAI(base_url=f"{proxy.url}/v1", api_key="key", http_client=http)
    tool: Any = {"type": "mcp", "server_label": "one", "server_url": f"{mcp}/mcp", "require_approval": "never"}

    ids = []
    for number in range(RESPONSES):
        body: Any = {
            "model": "scripted/demo",
            "input": 'call: add {"a": 1, "b": 1}',
            "tools": [tool | {"allowed_tools": ["add"]}],
        }
        if number % 2:
            with client.responses.stream(**body) as events:
                ids.append(events.get_final_response().id)
        else:
            ids.append(client.responses.create(**body).id)

    listed = httpx.get(f"{run.url}/v1/responses?limit=100&order=asc", trust_env=False, timeout=120).json()["data"]
    assert [each["id"] for each in listed] == ids
    assert {each["status"] for each in listed} == {"completed"}
    assert count_additions(mcp) - before == RESPONSES
    assert "POST /v1/responses" in proxy.dropped
