"""Processes of the benchmarks: functions as started by Lambda, and uvicorn."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from infra.bench.client import TOKEN
from infra.local.cloud import Cloud, function_spec, own_environment
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.function_process import FunctionProcess, FunctionSpec, Root
from infra.local.guardian import Guardian
from infra.local.invocation import Invocation
from infra.local.invoke import find_function
from infra.local.opt import link_runtime, merge_layers
from infra.local.proxy_event import HttpRequest, make_event
from infra.local.routing import Router

START_SECONDS = 30.0
OWN_PATH = os.pathsep.join((str(ROOT / "layers" / "core"), str(ROOT)))
"""The path of programs of this package that import the product."""

MODEL = "openai/bench"
SETTINGS = {
    "STINT_AUTH": "none",
    "STINT_SCRIPTED_WORD_SECONDS": "0",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
}
FLOOR = Path(__file__).with_name("floor")
LISTENING = re.compile(rb"running on (http://\S+)")


@dataclass
class Running:
    """A started process; times are seconds after its start."""

    pid: int
    ready: float
    began: float

    def elapsed(self) -> float:
        return time.perf_counter() - self.began


@dataclass
class RunningFunction(Running):
    """A function; `output` are the lines that it writes."""

    process: FunctionProcess
    output: list[str]

    async def answer(self, event: bytes) -> bytes:
        """Run one event to its end."""
        invocation = Invocation("bench", event)
        serving = asyncio.create_task(self.process.serve(invocation))
        body = await invocation.read()
        await serving
        if invocation.error:
            raise LocalCloudError(f"the function failed: {invocation.error.message}")
        return body

    async def first_token(self, event: bytes) -> float:
        """Run one event to its end, and return the seconds from the start of the process to its first token."""
        invocation = Invocation("bench", event)
        serving = asyncio.create_task(self.process.serve(invocation))
        found, received = 0.0, b""
        async for piece in invocation.body():
            received += piece
            if not found and TOKEN.search(received):
                found = self.elapsed()
        await serving
        if invocation.error or not found:
            raise LocalCloudError(f"the function sent no token: {received[-500:]!r}")
        return found


@dataclass
class RunningServer(Running):
    url: str


class Launcher:
    """Launcher of processes for a running cloud, with the environment from the template."""

    def __init__(self, cloud: Cloud, settings: Mapping[str, str], folder: Path) -> None:
        self._cloud = cloud
        self._services = {**cloud.engine.environment(), **settings}
        self._folder = folder
        self._guardian = Guardian()
        self._router = Router(cloud.system.routes)

    async def start(self) -> None:
        await self._guardian.start(self._folder)
        link_runtime(self._folder / "runtime")

    async def stop(self) -> None:
        await self._guardian.stop()

    def function(self, name: str) -> AbstractAsyncContextManager[RunningFunction]:
        """Start a function, and yield once it requests its first event."""
        return self._process(self._spec(name))

    def floor(self) -> AbstractAsyncContextManager[RunningFunction]:
        """Start the floor in place of the function of turns, and yield once it requests its first event."""
        spec = self._spec("turns")
        environment = {**spec.environment, "PYTHONPATH": OWN_PATH}
        return self._process(replace(spec, name="floor", environment=environment, layers=(), wrapper=str(FLOOR)))

    def _spec(self, name: str) -> FunctionSpec:
        function = find_function(self._cloud.system, f"stint-{name}")
        environment = own_environment(function, self._services, self._cloud.system.functions)
        return function_spec(function, environment, self._folder / "links", Path(sys.executable))

    @contextlib.asynccontextmanager
    async def _process(self, spec: FunctionSpec) -> AsyncIterator[RunningFunction]:
        root = Root(self._folder / spec.name, self._folder / "runtime")
        if not root.opt.exists():
            merge_layers(spec.layers, root.opt)
        output: list[str] = []
        began = time.perf_counter()
        process = await FunctionProcess.start(spec, root, lambda _, line: output.append(line), self._guardian)
        try:
            if not await process.wait_until_ready(START_SECONDS):
                raise LocalCloudError(f"function {spec.name} did not start: " + "\n".join(output))
            yield RunningFunction(process.pid, time.perf_counter() - began, began, process, output)
        finally:
            await process.stop()

    @contextlib.asynccontextmanager
    async def uvicorn(self, module: str) -> AsyncIterator[RunningServer]:
        """Start uvicorn with the `app` of a module of this package, and yield once it listens."""
        function = find_function(self._cloud.system, "stint-turns")
        environment = {**function.environment, **self._services, "PYTHONPATH": OWN_PATH, "PATH": os.defpath}
        # It would choose the loop of the product.
        options = ("--port", "0", "--no-access-log", "--loop", "asyncio")
        command = (sys.executable, "-m", "uvicorn", f"infra.bench.{module}:app", *options)
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, start_new_session=True
        )
        self._guardian.watch(process.pid)
        try:
            url = await listening(process)
            yield RunningServer(process.pid, time.perf_counter() - began, began, url)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.communicate()
            self._guardian.forget(process.pid)

    def event(self, method: str, path: str, body: object = None) -> bytes:
        """Return the event of API Gateway for a request."""
        match = self._router.match(method, path)
        if match is None:
            raise LocalCloudError(f"there is no route {method} {path}")
        headers = [("content-type", "application/json"), ("host", "127.0.0.1")]
        content = b"" if body is None else json.dumps(body).encode()
        request = HttpRequest(
            method, path, "", "", headers=headers, body=content, client="127.0.0.1", host="127.0.0.1", port=80
        )
        return json.dumps(make_event(request, match, self._cloud.system.stage, ())).encode()


def with_model(url: str) -> dict[str, str]:
    """Return the settings with the server of `openai/` models at a base URL, of which one is the default model."""
    return SETTINGS | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "bench", "STINT_DEFAULT_MODEL": MODEL}


async def listening(process: asyncio.subprocess.Process) -> str:
    """Wait until uvicorn listens, and return its URL."""
    said = b""
    while process.stderr and (line := await asyncio.wait_for(process.stderr.readline(), START_SECONDS)):
        said += line
        if found := LISTENING.search(line):
            return found[1].decode()
    raise LocalCloudError(f"uvicorn did not start: {said.decode('utf-8', 'replace')}")


@contextlib.asynccontextmanager
async def launcher(cloud: Cloud, settings: Mapping[str, str]) -> AsyncIterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="stint-bench-", ignore_cleanup_errors=True) as folder:
        made = Launcher(cloud, settings, Path(folder))
        await made.start()
        try:
            yield made
        finally:
            await made.stop()
