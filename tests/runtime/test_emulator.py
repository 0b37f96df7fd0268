"""The runtime against AWS's own implementation of the Runtime API.

AWS's runtime interface emulator ships with the SAM CLI. It gives a streamed answer back in one piece.
"""

import asyncio
import os
import platform
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.runtime.harness import APPS, CORE, RUNTIME_LAYER, Json, proxy_event, split
from tests.servers.ports import free_port

ROOT = Path(__file__).parents[2]
EMULATORS = sorted(ROOT.glob(".venv-sam/lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-x86_64"))
INVOKE = "/2015-03-31/functions/function/invocations"

pytestmark = [
    pytest.mark.skipif(not EMULATORS, reason="AWS's emulator comes with the SAM CLI, which is not installed"),
    pytest.mark.skipif(
        sys.platform != "linux" or platform.machine() != "x86_64", reason="the emulator is a Linux x86_64 program"
    ),
]


@pytest.fixture
async def emulator(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    port = free_port()
    addresses = ["--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
    addresses += ["--runtime-api-address", f"127.0.0.1:{free_port()}"]
    wrapper = (str(RUNTIME_LAYER / "stint-runtime"), sys.executable)
    environment = {"PATH": os.environ["PATH"], "LAMBDA_TASK_ROOT": str(APPS), "AWS_LAMBDA_FUNCTION_TIMEOUT": "10"}
    environment["PYTHONPATH"] = str(CORE)
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            EMULATORS[0], *addresses, *wrapper, "streams.app", env=environment, cwd=APPS, stdout=log, stderr=log
        )
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=120) as client:
        yield client
    process.terminate()
    await process.wait()


async def call(emulator: httpx.AsyncClient, event: Json) -> httpx.Response:
    async with asyncio.timeout(120):
        while True:
            try:
                answer = await emulator.post(INVOKE, json=event)
            except httpx.ConnectError:
                await asyncio.sleep(0.05)
            else:
                # It panics when an event comes before the runtime has asked for one, and tells nobody when it has.
                await asyncio.sleep(0.2)
                return answer


async def test_aws_takes_what_the_runtime_sends(emulator: httpx.AsyncClient) -> None:
    answers = [await call(emulator, proxy_event(path="/cookies")) for _ in range(3)]
    failed = await call(emulator, proxy_event(path="/fail-after-start"))
    broken = await call(emulator, proxy_event(path="/fail-later"))
    direct = await call(emulator, {"ping": 1})

    for answer in answers:
        head, body = split(answer.content)
        assert head["multiValueHeaders"] == {"set-cookie": ["a=1", "b=2"]}
        assert body == b"\x00\xff"
    assert failed.json()["errorType"] == "ValueError"
    assert split(broken.content)[1] == b"first"
    assert "REST proxy events" in direct.json()["message"]
