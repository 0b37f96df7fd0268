"""Runaway agents that an admin stops, or that end with their client, through `make run AUTH=on` with real clients."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import httpx
import llama_stack_client
import openai
import pytest
from infra.local.engine import ROOT
from tests.system.run_process import Run, clean_shell
from tests.system.test_auth_clients import PATHS, AuthorizedRun

MODEL = "scripted/demo"
WORD_SECONDS = 0.1
WORDS_IN_TWO_SECONDS = 20
RUNAWAY = 'call: add {"a": 2, "b": 3}\nrepeat: 200 times'
"""The model calls a tool until nothing allows another call."""


@pytest.fixture(scope="module")
def mcp() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
    process.kill()
    process.communicate()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizedRun]:
    shell = {"STINT_SCRIPTED_WORD_SECONDS": str(WORD_SECONDS), **PATHS}
    run = Run(tmp_path_factory.mktemp("stops"), 0, "--auth", "on", shell=shell)
    run.read_until("Ctrl-C stops")
    authorized = AuthorizedRun(run)
    admin(authorized, "GET", "")  # the process of the routes that stop work has started before its time counts
    yield authorized
    run.stop()


def admin(cloud: AuthorizedRun, method: str, path: str, body: object = None) -> Any:
    """Send a request with the first key."""
    headers = {"authorization": f"Bearer {cloud.key}"}
    url = f"{cloud.run.url}/v1/admin/stop{path}"
    answer = httpx.request(method, url, json=body, headers=headers, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def stop_within(cloud: AuthorizedRun, events: Iterable[Any], begun: int, body: object) -> Iterator[Any]:
    """Stop something after some events, and yield the events that follow."""
    for number, event in enumerate(events):
        if number == begun:
            admin(cloud, "POST", "", body)
        if number > begun:
            yield event


@pytest.fixture(scope="module")
def abandoned(cloud: AuthorizedRun) -> str:
    """Start a turn that ends with its client, send one heartbeat, and disconnect. Return the turn's address."""
    with cloud.llama(cloud.key) as client:
        config: Any = {"model": MODEL, "instructions": ""}
        agent = client.agents.create(agent_config=config).agent_id
        session = client.agents.session.create(agent, session_name="s").session_id
    url = f"{cloud.run.url}/v1/agents/{agent}/session/{session}/turn"
    messages = [{"role": "user", "content": "long: 2000 words"}]
    body = {"messages": messages, "stream": True, "on_disconnect": "cancel"}
    with httpx.stream("POST", url, json=body, headers=headers_of(cloud), timeout=60, trust_env=False) as answer:
        started = next(line for line in answer.iter_lines() if line.startswith("data:"))
        turn = f"{url}/{json.loads(started[5:])['event']['payload']['turn_id']}"
        beat = httpx.post(f"{turn}/heartbeat", headers=headers_of(cloud), timeout=60, trust_env=False)
        assert beat.json() == {"interval_seconds": 5, "timeout_seconds": 15}
    return turn


def headers_of(cloud: AuthorizedRun) -> dict[str, str]:
    return {"authorization": f"Bearer {cloud.key}"}


@pytest.mark.usefixtures("abandoned")
def test_a_runaway_turn_ends_within_two_seconds_and_says_what_it_cost(cloud: AuthorizedRun, mcp: str) -> None:
    with cloud.llama(cloud.key) as client:
        client.toolgroups.register(
            toolgroup_id="mcp::sums", provider_id="model-context-protocol", mcp_endpoint={"uri": mcp}
        )
        config: Any = {"model": MODEL, "instructions": "", "toolgroups": ["mcp::sums"], "max_infer_iters": 100}
        agent = client.agents.create(agent_config=config).agent_id
        session = client.agents.session.create(agent, session_name="s").session_id
        messages: Any = [{"role": "user", "content": RUNAWAY}]
        body = {"kind": "session", "id": session}
        url = f"{cloud.run.url}/v1/agents/{agent}/session/{session}"
        headers = {"authorization": f"Bearer {cloud.key}"}
        stream = httpx.stream(
            "POST", f"{url}/turn", json={"messages": messages, "stream": True}, headers=headers, timeout=60
        )
        with stream as answer:
            events = (line for line in answer.iter_lines() if line.startswith("data:"))
            following = list(stop_within(cloud, events, 30, body))

        assert '"code":"stopped"' in following[-1].replace(" ", "")
        assert len(following) <= 3 * WORDS_IN_TWO_SECONDS  # each word is an event, and each tool three more
        [turn] = httpx.get(url, headers=headers, trust_env=False, timeout=60).json()["turns"]
        assert (turn["status"], turn["error"]["code"]) == ("failed", "stopped")
        assert turn["receipt"]["model_calls"] > 0
        assert turn["receipt"]["tool_calls"] > 0
        assert turn["receipt"]["dollars"] is not None or turn["receipt"]["infrastructure_dollars"] > 0
        with pytest.raises(llama_stack_client.PermissionDeniedError, match="was stopped by an admin"):
            client.agents.turn.create(session, agent_id=agent, messages=messages, stream=False)
        admin(cloud, "DELETE", f"/session/{session}")
        said: Any = [{"role": "user", "content": "say: ok"}]
        ended: Any = client.agents.turn.create(session, agent_id=agent, messages=said, stream=False)
        assert ended.output_message.content == "ok"


def test_a_stopped_key_ends_its_responses_and_starts_no_other_one(cloud: AuthorizedRun) -> None:
    key = cloud.create_key(scopes=["use"])
    with cloud.openai(key["key"]) as client:
        streamed = client.responses.create(model=MODEL, input="long: 2000 words", stream=True)
        following: list[Any] = []
        with pytest.raises(openai.APIError, match="was stopped by an admin"):
            following.extend(stop_within(cloud, streamed, 5, {"kind": "key", "id": key["id"]}))

        assert len(following) <= 2 * WORDS_IN_TWO_SECONDS
        for attempt in (
            lambda: client.responses.create(model=MODEL, input="hello"),
            lambda: client.responses.create(model=MODEL, input="hello", background=True),
            lambda: client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}]),
        ):
            with pytest.raises(openai.PermissionDeniedError) as refused:
                attempt()
            assert refused.value.code == "stopped"


def test_a_turn_whose_client_is_gone_ends(cloud: AuthorizedRun, abandoned: str) -> None:
    for _ in range(120):
        turn = httpx.get(abandoned, headers=headers_of(cloud), timeout=60, trust_env=False).json()
        if turn["status"] != "in_progress":
            break
        time.sleep(0.5)

    assert (turn["status"], turn["error"]) == ("cancelled", None)
    assert turn["receipt"]["model_calls"] == 1


def test_running_runs_are_listed_and_each_is_stopped_alone(cloud: AuthorizedRun) -> None:
    key = cloud.create_key(scopes=["use"])
    with cloud.llama(key["key"]) as client:
        agent = client.agents.create(agent_config={"model": MODEL, "instructions": ""}).agent_id
        session = client.agents.session.create(agent, session_name="s").session_id
    url = f"{cloud.run.url}/v1/agents/{agent}/session/{session}/turn"
    body = {"messages": [{"role": "user", "content": "long: 2000 words"}], "stream": True}
    headers = {"authorization": f"Bearer {key['key']}"}
    with (
        cloud.openai(key["key"]) as client,
        httpx.stream("POST", url, json=body, headers=headers, timeout=60, trust_env=False) as stream,
    ):
        response = client.responses.create(model=MODEL, input="long: 2000 words", background=True).id
        started = next(line for line in stream.iter_lines() if line.startswith("data:"))
        turn = json.loads(started[5:])["event"]["payload"]["turn_id"]

        listed = list_runs_until(cloud, key["id"], 2)
        for kind, identifier in (("turn", turn), ("response", response)):
            admin(cloud, "POST", "", {"kind": kind, "id": identifier})

        assert listed == {
            turn: ("turn", agent, session, MODEL, False),
            response: ("response", None, None, MODEL, True),
        }
        assert list_runs_until(cloud, key["id"], 0) == {}
        ended = httpx.get(f"{url}/{turn}", headers=headers, timeout=60, trust_env=False).json()
        assert (ended["status"], ended["error"]["code"]) == ("failed", "stopped")
        assert client.responses.retrieve(response).status == "failed"
        assert client.responses.create(model=MODEL, input="say: ok").output_text == "ok"


def list_runs_until(cloud: AuthorizedRun, key_id: str, count: int) -> dict[str, tuple[Any, ...]]:
    """Return the runs of a key once so many are listed, as the commands list them."""
    command = [sys.executable, "-m", "stint.cli", "runs", "list", "--key", key_id, "--json"]
    for _ in range(60):
        url = f"{cloud.run.url}/v1/admin/runs"
        answer = httpx.get(
            url, params={"key_id": key_id}, headers=headers_of(cloud), timeout=60, trust_env=False
        ).json()
        if len(answer["data"]) == count:
            break
        time.sleep(0.5)
    done = subprocess.run(
        [*command, "--state", str(cloud.run.state)],
        cwd=ROOT,
        env=clean_shell() | PATHS,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {run["id"] for run in json.loads(done.stdout)} == {run["id"] for run in answer["data"]}
    names = ("kind", "agent_id", "session_id", "model", "background")
    return {run["id"]: tuple(run[name] for name in names) for run in answer["data"]}


def test_the_command_stops_a_whole_tenant(cloud: AuthorizedRun) -> None:
    def stop(*arguments: str) -> None:
        command = [sys.executable, "-m", "stint.cli", "stop", *arguments, "--state", str(cloud.run.state)]
        subprocess.run(command, cwd=ROOT, env=clean_shell() | PATHS, capture_output=True, text=True, check=True)

    with cloud.openai(cloud.key) as client:
        stop("tenant")
        with pytest.raises(openai.PermissionDeniedError, match="This tenant was stopped"):
            client.responses.create(model=MODEL, input="hello")
        stop("lift", "tenant")
        assert client.responses.create(model=MODEL, input="say: ok").output_text == "ok"
