"""The first run of a process finds what its function has loaded and opened in the init phase."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest
from infra.bench.client import turn_body
from infra.bench.model_server import running_model_server
from infra.bench.processes import with_model
from infra.bench.turns import make_sessions
from infra.local.cloud import Plan, own_environment, running_cloud, serving_front
from infra.local.engine import ROOT, Engine
from infra.local.invoke import find_function
from infra.local.server import listen

RESPONSE = {"model": "openai/bench", "input": "Hello", "stream": True}
UNREACHABLE = "http://127.0.0.1:9/v1"


@dataclass(frozen=True)
class FirstRun:
    """The output of a process, and the ports of the servers."""

    printed: dict[str, Any]
    dynamodb: int
    model: int


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


async def first_run(engine: Engine, name: str, model_url: str = "") -> FirstRun:
    """Run the first request of a process. `model_url` replaces the server of models."""
    async with AsyncExitStack() as stack:
        model = stack.enter_context(running_model_server())
        settings = with_model(model.url)
        cloud = await stack.enter_async_context(running_cloud(Plan(settings), engine.running, ignore))
        listener = stack.enter_context(closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, ignore))
        [session] = await asyncio.to_thread(make_sessions, front, 1)
        functions = cloud.system.functions
        function = find_function(cloud.system, f"stint-{name}")
        settings |= {"OPENAI_BASE_URL": model_url or model.url}
        environment = own_environment(function, {**engine.environment(), **settings}, functions)
        path, body = (f"{session}/turn", turn_body("Hello")) if name == "turns" else ("/v1/responses", RESPONSE)
        printed = await asyncio.to_thread(run_process, name, environment, path, body)
        return FirstRun(printed, port_of(engine.environment()["AWS_ENDPOINT_URL_DYNAMODB"]), port_of(model.url))


def run_process(name: str, environment: Any, path: str, body: object) -> dict[str, Any]:
    command = (sys.executable, "-m", "tests.system.first_run_process", path, json.dumps(body))
    folders = os.pathsep.join(str(ROOT / each) for each in ("layers/core", "layers/runtime/python", "."))
    done = subprocess.run(
        command,
        cwd=ROOT / "functions" / name,
        env={**environment, "PYTHONPATH": folders, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


def ignore(subject: str, line: str) -> None:
    """Drop a line of log."""


@pytest.mark.parametrize(("name", "at_once"), [("turns", 5), ("responses", 3)])
async def test_a_first_run_loads_no_module_and_opens_no_connection(
    empty_engine: Engine, name: str, at_once: int
) -> None:
    found = await first_run(empty_engine, name)

    assert found.printed["modules"] == []
    assert found.printed["request"] == []
    assert sorted(found.printed["start"]) == sorted([found.dynamodb] * at_once + [found.model])
    assert "done" in found.printed["answer"]


@pytest.mark.parametrize("name", ["turns", "responses"])
async def test_a_process_starts_although_its_model_server_cannot_be_reached(empty_engine: Engine, name: str) -> None:
    found = await first_run(empty_engine, name, UNREACHABLE)

    assert found.dynamodb in found.printed["start"]
    assert "Cannot reach the model's provider" in found.printed["answer"]
