"""A Runtime API that drops a response: what Lambda does when it has lost the invocation."""

import asyncio
import json
import os
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from tests.runtime.harness import APPS, CORE, RUNTIME_LAYER, proxy_event


@dataclass
class DroppingApi:
    """Returns the events, then ends; handles each response as `manner` says."""

    manner: str
    events: list[bytes]
    requests: list[str] = field(default_factory=list)

    async def accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head.split(" HTTP/")[0])
        if head.startswith("GET"):
            await self.give(writer)
        elif self.manner == "refuse":
            writer.write(b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif self.manner == "hang up":
            await reader.read(10)
        elif self.manner == "reset":
            writer.transport.abort()
        writer.close()

    async def give(self, writer: StreamWriter) -> None:
        if self.events:
            event = self.events.pop(0)
            head = f"Content-Length: {len(event)}\r\nLambda-Runtime-Aws-Request-Id: id-{len(self.events)}\r\n"
            writer.write(f"HTTP/1.1 200 OK\r\n{head}Lambda-Runtime-Invocation-Id: 7\r\n\r\n".encode() + event)
            await writer.drain()


@pytest.fixture
async def runtime() -> AsyncIterator[list[asyncio.subprocess.Process]]:
    started: list[asyncio.subprocess.Process] = []
    yield started
    for process in started:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("manner", ["refuse", "hang up", "reset"])
async def test_the_app_runs_to_its_end_and_the_next_event_is_taken(
    manner: str, runtime: list[asyncio.subprocess.Process]
) -> None:
    event = json.dumps(proxy_event(path="/flood")).encode()
    api = DroppingApi(manner, [event, event])
    server = await asyncio.start_server(api.accept, "127.0.0.1", 0)
    process = await start(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    runtime.append(process)

    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    server.close()

    root = "/2018-06-01/runtime/invocation"
    assert api.requests == [
        f"GET {root}/next",
        f"POST {root}/id-1/response",
        f"GET {root}/next",
        f"POST {root}/id-0/response",
        f"GET {root}/next",
    ]
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["level"] for line in lines] == ["WARNING", "WARNING", "ERROR"]
    assert [line["requestId"] for line in lines[:2]] == ["id-1", "id-0"]
    assert lines[2]["errorReason"] == "Runtime.ApiError"
    assert process.returncode == 1


async def start(address: str) -> asyncio.subprocess.Process:
    environment = {
        "AWS_LAMBDA_RUNTIME_API": address,
        "_HANDLER": "streams.app",
        "LAMBDA_TASK_ROOT": str(APPS),
        "LAMBDA_RUNTIME_DIR": "/nowhere",
        "PYTHONPATH": str(CORE),
        "PATH": os.environ["PATH"],
    }
    return await asyncio.create_subprocess_exec(
        str(RUNTIME_LAYER / "stint-runtime"),
        sys.executable,
        "/var/runtime/bootstrap.py",
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
