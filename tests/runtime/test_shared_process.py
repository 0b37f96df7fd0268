"""The local Lambda service with one process for many invocations."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable

import pytest
from infra.local.invocation import Invocation
from tests.runtime.harness import Gate, Reader, Service, Start, proxy_event, split, until, with_gate


class Gates:
    """A gate for each of several streams that are open at once."""

    def __init__(self, function: Service) -> None:
        self.function = function
        self.gates: list[Gate] = []
        self.servers: list[asyncio.Server] = []

    async def start(self) -> tuple[Invocation, Gate]:
        """Start a stream, and wait until it has sent its first bytes and waits at the gate."""
        gate = Gate()
        self.gates.append(gate)
        self.servers.append(await asyncio.start_server(gate.accept, "127.0.0.1", 0))
        gate.port = self.servers[-1].sockets[0].getsockname()[1]
        stream = await self.function.start(with_gate(proxy_event(path="/steps"), gate))
        await gate.reached("step 0")
        return stream, gate

    def close(self) -> None:
        for gate in self.gates:
            gate.close()
        for server in self.servers:
            server.close()


Make = Callable[[Service], Gates]


@pytest.fixture
async def make_gates() -> AsyncIterator[Make]:
    made: list[Gates] = []

    def make(function: Service) -> Gates:
        made.append(Gates(function))
        return made[-1]

    yield make
    for each in made:
        each.close()


async def finish(stream: Invocation, gate: Gate) -> None:
    for index in range(3):
        await gate.open(f"step {index}")
    assert len(split(await stream.read())[1].split()) == 3
    assert stream.error is None


async def test_calls_at_once_share_one_process(service: Start, make_gates: Make) -> None:
    function = await service(at_once=8)
    gates = make_gates(function)

    streams = [await gates.start() for _ in range(8)]
    pids = function.functions.processes("f")
    for stream, gate in reversed(streams):
        await finish(stream, gate)

    assert len(pids) == 1
    assert function.functions.processes("f") == pids


async def test_calls_beyond_the_limit_wait_for_a_place(service: Start, make_gates: Make) -> None:
    function = await service(at_once=2, concurrency=1)
    gates = make_gates(function)
    streams = [await gates.start() for _ in range(2)]

    waiting = [asyncio.create_task(function.call(proxy_event(path="/cookies"))) for _ in range(5)]
    await asyncio.sleep(0)
    begun = [task.done() for task in waiting]
    await finish(*streams[0])
    answers = await asyncio.gather(*waiting)
    await finish(*streams[1])

    assert not any(begun)
    assert [split(payload)[1] for payload, _ in answers] == [b"\x00\xff"] * 5


async def test_a_dead_process_fails_its_streams_and_is_replaced(service: Start, make_gates: Make) -> None:
    function = await service(at_once=4)
    gates = make_gates(function)
    streams = [await gates.start() for _ in range(3)]
    (pid,) = function.functions.processes("f")

    os.kill(pid, signal.SIGKILL)
    for stream, _ in streams:
        await stream.read()
    fresh, gate = await gates.start()
    (other,) = function.functions.processes("f")
    await finish(fresh, gate)

    assert {stream.error and stream.error.type for stream, _ in streams} <= {
        "Runtime.TruncatedResponse",
        "Runtime.ExitError",
    }
    assert all(stream.error for stream, _ in streams)
    assert other != pid


async def test_a_process_that_died_idle_loses_no_call(service: Start, make_gates: Make) -> None:
    function = await service(at_once=4)
    gates = make_gates(function)
    await finish(*await gates.start())
    (pid,) = function.functions.processes("f")

    os.kill(pid, signal.SIGKILL)
    await finish(*await gates.start())

    assert function.functions.processes("f") != {pid}


async def test_a_process_that_ends_finishes_its_streams_beside_its_successor(service: Start, make_gates: Make) -> None:
    function = await service(at_once=4)
    gates = make_gates(function)
    stream, gate = await gates.start()
    (pid,) = function.functions.processes("f")

    _, leaving = await function.call(proxy_event(path="/leave"))
    async with asyncio.timeout(60):
        while (other := (await function.json(proxy_event()))["pid"]) == pid:
            pass  # its requests for events are withdrawn just after the failure is reported
    both = function.functions.processes("f")
    await finish(stream, gate)

    assert leaving.error
    assert leaving.error.type == "SystemExit"
    assert both == {pid, other}
    await until(lambda: function.functions.processes("f") == {other})


async def test_a_process_with_a_blocked_event_loop_is_replaced(service: Start, make_gates: Make) -> None:
    function = await service(at_once=4, timeout=2)
    _, frozen = await function.call(proxy_event(path="/freeze"))
    gates = make_gates(function)

    await finish(*await gates.start())

    assert frozen.error
    assert frozen.error.type == "Sandbox.Timedout"
    assert len(function.functions.processes("f")) == 1


async def test_an_init_failure_is_reported_to_every_call(service: Start) -> None:
    function = await service("missing.app", at_once=4)

    failed = [await function.call(proxy_event()) for _ in range(2)]

    assert [each.error and each.error.type for _, each in failed] == ["Runtime.ImportModuleError"] * 2


async def test_without_throttling_calls_wait_for_a_process_of_their_own(service: Start, gate: Gate) -> None:
    function = await service(concurrency=1, throttle=False)
    busy = await function.start(with_gate(proxy_event(path="/steps"), gate))
    reader = Reader(busy)
    await reader.until(lambda data: data.endswith(b" "))

    waiting = [asyncio.create_task(function.json(proxy_event())) for _ in range(3)]
    for index in range(3):
        await gate.open(f"step {index}")

    assert [(await each)["path"] for each in waiting] == ["/echo"] * 3
    await reader.rest()
