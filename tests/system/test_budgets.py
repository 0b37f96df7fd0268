"""Limits on the costs of the streaming function. `make bench` measures its times."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from infra.bench.memory import peak
from infra.bench.processes import SETTINGS, launcher
from infra.local.cloud import Plan, running_cloud
from infra.local.engine import ROOT, Engine
from infra.local.server import listen
from tests.servers.chat_completions import ChatCompletionsServer

BUDGET_MB = 110
NEVER = {"openai", "uvicorn", "pandas", "numpy", "boto3", "aws_xray_sdk"}

# One turn through the app of functions/turns, called as an ASGI server would; then what is loaded.
A_TURN = """
import asyncio, json, sys
sys.path.insert(0, "functions/turns")
from app import app, composition
from stint.domain.llama_stack.agents import AgentConfig

async def main(model):
    services = composition.make_services("default")
    config = AgentConfig.model_validate({"model": model, "instructions": "Answer briefly."})
    agent = await services.agents.create(config)
    session = await services.sessions.create(agent, "budget")
    body = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}
    requests, received = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}], []

    async def receive():
        return requests.pop() if requests else await asyncio.Event().wait()

    async def send(message):
        received.append(message.get("body", b""))

    path = f"/v1/agents/{agent}/session/{session}/turn"
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "root_path": "",
             "query_string": b"", "headers": headers, "scheme": "http", "http_version": "1.1"}
    await app(scope, receive, send)
    return b"turn_complete" in b"".join(received)

complete = asyncio.run(main(sys.argv[1]))
print(json.dumps({"complete": complete, "modules": list(sys.modules)}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def chat_completions() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as server:
        yield server


def modules_after_a_turn(model: str, engine: Engine, **environment: str) -> set[str]:
    settings = {
        "STINT_TABLE": engine.outputs["TableName"],
        "STINT_BUCKET": engine.outputs["BucketName"],
        "STINT_SCRIPTED_MODELS": "true",
        "STINT_AUTH": "none",
    }
    path = {"PYTHONPATH": str(ROOT / "layers" / "core"), "PATH": os.defpath}
    done = subprocess.run(
        [sys.executable, "-c", A_TURN, model],
        cwd=ROOT,
        env={**engine.environment(), **settings, **path, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    result: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    assert result["complete"], done.stdout
    return set(result["modules"])


def test_a_turn_of_the_scripted_model_loads_no_other_provider(engine: Engine) -> None:
    modules = modules_after_a_turn("scripted/demo", engine)

    assert "stint.models.scripted.model" in modules
    assert modules & (NEVER | {"httpx", "stint.models.openai_compatible", "stint.models.bedrock.model"}) == set()


def test_a_turn_of_an_openai_model_loads_neither_httpx_nor_an_sdk(
    engine: Engine, chat_completions: ChatCompletionsServer
) -> None:
    modules = modules_after_a_turn("openai/gpt", engine, OPENAI_BASE_URL=chat_completions.base_url)

    assert "stint.models.openai_compatible" in modules
    assert modules & (NEVER | {"httpx", "stint.models.bedrock.model"}) == set()


@pytest.mark.skipif(sys.platform != "linux", reason="VmHWM is Linux's")
async def test_the_streaming_function_stays_below_its_memory_budget(engine: Engine) -> None:
    def ignore(subject: str, line: str) -> None:
        return

    async with running_cloud(Plan(SETTINGS), engine.running, ignore) as cloud, launcher(cloud, SETTINGS) as launch:
        async with launch.function("agents") as agents:

            async def create(path: str, body: object) -> Any:
                return json.loads(json.loads(await agents.answer(launch.event("POST", path, body)))["body"])

            config = {"model": "scripted/demo", "instructions": "Answer briefly."}
            agent = (await create("/v1/agents", {"agent_config": config}))["agent_id"]
            path = f"/v1/agents/{agent}/session"
            session = (await create(path, {"session_name": "budget"}))["session_id"]
        turn = {"messages": [{"role": "user", "content": "long: 1000 words"}], "stream": True}

        async with launch.function("turns") as turns:
            idle = peak(turns.pid)
            answer = await turns.answer(launch.event("POST", f"{path}/{session}/turn", turn))
            most = peak(turns.pid)

    assert answer.count(b"step_progress") >= 1000
    assert 20 < idle < most < BUDGET_MB


def test_servers_of_the_local_cloud_send_small_events_at_once() -> None:
    with listen() as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
