"""A turn with three tool calls in one response, compared with the sum of three turns with one call each."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from infra.bench.client import Api
from infra.bench.report import Row
from infra.bench.streams import row
from infra.local.cloud import base_url
from infra.local.server import listen, serving
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

ROUNDS = 5
TOOL_SECONDS = 0.2
NAMES = ("fetch_alpha", "fetch_beta", "fetch_gamma")


async def measure_tools(front: str) -> list[Row]:
    """Measure turns with all tools in parallel, and the sum of turns with one tool each, in warm processes."""
    async with slow_server() as url:
        return await asyncio.to_thread(measure, front, url)


@asynccontextmanager
async def slow_server() -> AsyncIterator[str]:
    async def answer(_request: Request) -> PlainTextResponse:
        await asyncio.sleep(TOOL_SECONDS)
        return PlainTextResponse("done")

    with listen() as listener:
        async with serving(Starlette(routes=[Route("/", answer)]), listener):
            yield base_url(listener)


def measure(front: str, url: str) -> list[Row]:
    api = Api(front)
    api.post("/v1/toolgroups", toolgroup(url))
    config = {"model": "scripted/demo", "instructions": "", "toolgroups": ["bench"]}
    agent = str(api.post("/v1/agents", {"agent_config": config})["agent_id"])
    at_once, alone = message(*NAMES), [message(name) for name in NAMES]
    elapsed(api, agent, at_once)
    pairs = []
    for _ in range(ROUNDS):
        together = elapsed(api, agent, at_once)
        pairs.append([together, sum(elapsed(api, agent, each) for each in alone)])
    api.close()
    return [row("turn with three tools of 200 ms", "ms", [[seconds * 1000 for seconds in pair] for pair in pairs])]


def message(*names: str) -> str:
    return "Please " + " and ".join(names)


def elapsed(api: Api, agent: str, text: str) -> float:
    """Return the seconds of one turn in a new session, from the request to the last event."""
    return api.stream_turn(api.create_session(agent), text).end


def toolgroup(url: str) -> dict[str, Any]:
    tools = [{"name": name, "url": url} for name in NAMES]
    return {"toolgroup_id": "bench", "provider_id": "remote-execution", "args": {"tools": tools}}
