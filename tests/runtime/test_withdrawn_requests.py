"""Events for a living process that has withdrawn its request for one."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from infra.local.function_process import FunctionSpec
from infra.local.guardian import Guardian
from infra.local.invocation import Invocation
from infra.local.runtime_api import RuntimeApi
from infra.local.shared_process import SharedProcess
from tests.runtime.harness import APPS

Requests = Callable[[], socket.socket]


def spec() -> FunctionSpec:
    return FunctionSpec(
        name="f",
        handler="streams.app",
        code=APPS,
        layers=(),
        environment={},
        timeout=2,
        memory=256,
        wrapper=None,
        python=Path(sys.executable),
        at_once=4,
    )


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[tuple[SharedProcess, Requests]]:
    """Yield a process that runs on, and a function that requests an event on its behalf."""
    api = RuntimeApi(at_once=4)
    host, port = (await api.start()).split(":")
    guardian = Guardian()
    await guardian.start(tmp_path)
    child = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)

    def request() -> socket.socket:
        connection = socket.create_connection((host, int(port)))
        connection.sendall(b"GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n")
        return connection

    started = SharedProcess(spec(), api, child, lambda _name, _line: None, guardian)
    yield started, request
    await started.stop()
    await guardian.stop()


async def test_an_event_for_a_withdrawn_request_returns_at_once(process: tuple[SharedProcess, Requests]) -> None:
    shared, request = process
    connection = request()
    await shared.wait_until_ready(60)
    invocation = Invocation("id-1", b"{}")

    connection.close()
    delivery = shared.begin(invocation)  # before the event loop can notice the end of the connection
    taken = await shared.finish(delivery)

    assert not taken
    assert not invocation.ended
    assert shared.alive
    assert not shared.usable


async def test_a_request_that_is_withdrawn_while_its_event_is_sent_returns_it(
    process: tuple[SharedProcess, Requests],
) -> None:
    shared, request = process
    connection = request()
    await shared.wait_until_ready(60)
    invocation = Invocation("id-1", bytes(4 * 1024 * 1024))

    delivery = shared.begin(invocation)
    finishing = asyncio.create_task(shared.finish(delivery))
    await asyncio.get_running_loop().run_in_executor(None, connection.recv, 1, socket.MSG_PEEK)
    connection.close()

    assert not await finishing
    assert not invocation.ended
    assert not shared.usable
