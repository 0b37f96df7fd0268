"""`python -m infra.bench.http_clients`: CPU time of streamed model calls, by our own client, httpx, and aiohttp.

The model server answers in another thread, so the figures are those of the client's thread. aiohttp is measured if it
is installed: nothing in the project needs it.
"""

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import httpx
from httpx_sse import EventSource
from infra.bench.model_server import running_model_server
from infra.bench.report import Row, render

from stint.http1.client import HttpClient, HttpTimeouts
from stint.http1.proxies import Proxies
from stint.providers.openai.event_stream import EventStreamDecoder

RUNS = 5
CALLS = 640
"""Calls of a run, however many are made at once."""
BODY = b'{"messages": [{"role": "user", "content": "%s"}]}' % (b"x" * 500)
HEADERS = {"Accept": "text/event-stream", "Content-Type": "application/json", "Authorization": "Bearer key"}
IMPORTS = {"own": "stint.http1.client", "httpx": "httpx, httpx_sse", "aiohttp": "aiohttp"}

Call = Callable[[], Awaitable[None]]


def make_own(url: str) -> tuple[Call, Callable[[], Awaitable[None]]]:
    client = HttpClient(Proxies({}), HttpTimeouts())

    async def call() -> None:
        decoder = EventStreamDecoder()
        async with client.stream("POST", url, HEADERS, BODY) as response:
            async for piece in response:
                decoder.feed(piece)

    return call, client.close


def make_httpx(url: str) -> tuple[Call, Callable[[], Awaitable[None]]]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
    client = httpx.AsyncClient(limits=limits, trust_env=False)

    async def call() -> None:
        async with client.stream("POST", url, headers=HEADERS, content=BODY) as response:
            async for event in EventSource(response).aiter_sse():
                _ = event.data

    return call, client.aclose


def make_aiohttp(url: str) -> tuple[Call, Callable[[], Awaitable[None]]]:
    import aiohttp  # type: ignore[import-not-found]  # noqa: PLC0415 - see above

    client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def call() -> None:
        async with client.post(url, headers=HEADERS, data=BODY) as response:
            async for line in response.content:
                line.startswith(b"data:")

    return call, client.close


CLIENTS = {"own": make_own, "httpx": make_httpx, "aiohttp": make_aiohttp}


async def measure(client: str, url: str, at_once: int) -> float:
    """Return the CPU time of a call in seconds."""
    call, close = CLIENTS[client](url)

    async def call_often(times: int) -> None:
        for _ in range(times):
            await call()

    await asyncio.gather(*(call_often(2) for _ in range(at_once)))
    began = time.thread_time()
    await asyncio.gather(*(call_often(CALLS // at_once) for _ in range(at_once)))
    taken = time.thread_time() - began
    await close()
    return taken / CALLS


def measure_import(client: str) -> float:
    """Return the CPU time of an import in seconds, without that of the standard library that all need."""
    usual = "import asyncio, base64, re, time, urllib.parse"
    program = f"{usual}; began = time.process_time(); import {IMPORTS[client]}; print(time.process_time() - began)"
    return float(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout)


def main() -> None:
    clients = [name for name in CLIENTS if importlib.util.find_spec(name) or name == "own"]
    figures: dict[str, dict[str, list[float]]] = {}
    with running_model_server() as model:
        url = f"{model.url}/chat/completions"
        for at_once in (1, 64):
            row = figures.setdefault(f"a call, {at_once} at once", {})
            for name in clients * RUNS:
                row.setdefault(name, []).append(asyncio.run(measure(name, url, at_once)) * 1000)
    figures["import"] = {name: [measure_import(name) * 1000 for _ in range(RUNS)] for name in clients}
    for name in clients[1:]:
        rows = [Row(label, "ms", row["own"], row[name]) for label, row in figures.items()]
        print(render("CPU time of streamed model calls", "own", name, rows))


if __name__ == "__main__":
    main()
