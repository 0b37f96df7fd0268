"""A runtime process that takes many events at once, and its Runtime API."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from infra.local.engine import ROOT
from infra.local.invocation import Invocation
from infra.local.runtime_api import RuntimeApi
from tests.runtime.harness import APPS, RUNTIME_LAYER, Gate, Json, proxy_event, until, with_gate


@dataclass
class Many:
    """A started process. `output` is its log, and `held` are the gates of its streams."""

    api: RuntimeApi
    process: asyncio.subprocess.Process
    at_once: int
    timeout: float
    held: list[Gate] = field(default_factory=list)
    servers: list[asyncio.Server] = field(default_factory=list)
    output: str = ""

    async def start(self, path: str, **fields: Any) -> tuple[Invocation, Gate]:
        """Send an event with a gate of its own."""
        gate = Gate()
        server = await asyncio.start_server(gate.accept, "127.0.0.1", 0)
        gate.port = server.sockets[0].getsockname()[1]
        self.held.append(gate)
        self.servers.append(server)
        event = with_gate(proxy_event(path=path, **fields), gate)
        invocation = Invocation(str(uuid4()), json.dumps(event).encode())
        async with asyncio.timeout(60):
            await self.api.ready.wait()
        self.api.dispatch(invocation, timeout=self.timeout, arn="arn:f")
        return invocation, gate

    async def polls(self, number: int) -> None:
        """Wait until the process has this number of requests for events."""
        await until(lambda: self.api.polls == number, 60)

    async def exit(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        async with asyncio.timeout(60):
            output, _ = await self.process.communicate()
        self.output += output.decode()
        return int(self.process.returncode or 0)

    def lines(self) -> list[Json]:
        return [json.loads(line) for line in self.output.splitlines()]

    async def stop(self) -> None:
        for gate in self.held:
            gate.close()
        for server in self.servers:
            server.close()
        if self.process.returncode is None:
            self.process.kill()
            await self.exit()
        await self.api.stop()


@asynccontextmanager
async def many(
    at_once: int, *, handler: str = "many.app", timeout: float = 60, at_first: int | None = None, **environment: str
) -> AsyncIterator[Many]:
    """Start the runtime with `at_once` requests for events, and wait for them, or for the number `at_first`."""
    api = RuntimeApi(at_once=at_once)
    variables = {
        "AWS_LAMBDA_RUNTIME_API": await api.start(),
        "STINT_CONCURRENCY": str(at_once),
        "_HANDLER": handler,
        "LAMBDA_TASK_ROOT": str(APPS),
        "LAMBDA_RUNTIME_DIR": "/nowhere",
        "PYTHONPATH": f"{ROOT / 'layers' / 'core'}:{ROOT}",
        "PATH": os.environ["PATH"],
        **environment,
    }
    process = await asyncio.create_subprocess_exec(
        str(RUNTIME_LAYER / "stint-runtime"),
        sys.executable,
        "/var/runtime/bootstrap.py",
        env=variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    running = Many(api, process, at_once, timeout)
    try:
        await running.polls(at_first or at_once)
        yield running
    finally:
        await running.stop()
