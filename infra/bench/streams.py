"""Streamed turns through front and runtime compared with the same app on uvicorn, interleaved."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE

from infra.bench.client import Measure
from infra.bench.report import Row
from infra.local.errors import LocalCloudError

ROUNDS = 3
LONG = "long: 1000 words"
SHORT = "say: done"


async def measure_streams(front: str, server: str) -> list[Row]:
    """Measure the time to the first event, events per second, and turns per second, in warm processes."""
    urls = (front, server)
    short = [[await run_client(url, 1, 20, SHORT) for url in urls] for _ in range(ROUNDS)]
    many = [[await run_client(url, 8, 10, SHORT) for url in urls] for _ in range(ROUNDS)]
    long = [[await run_client(url, 1, 3, LONG) for url in urls] for _ in range(ROUNDS)]
    return [
        row("time to first event", "ms", [[each.first_event * 1000 for each in pair] for pair in short]),
        row("events a second, turn of 1,000 words", "/s", [[each.events for each in pair] for pair in long]),
        row("turns a second, 1 session", "/s", [[each.turns for each in pair] for pair in short]),
        row("turns a second, 8 sessions at once", "/s", [[each.turns for each in pair] for pair in many]),
    ]


def row(name: str, unit: str, pairs: list[list[float]]) -> Row:
    return Row(name, unit, [ours for ours, _ in pairs], [theirs for _, theirs in pairs])


async def run_client(url: str, sessions: int, turns: int, message: str) -> Measure:
    command = (sys.executable, "-m", "infra.bench.client", url, str(sessions), str(turns), message)
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    output, said = await process.communicate()
    if process.returncode:
        raise LocalCloudError(f"the client failed: {said.decode('utf-8', 'replace').strip()}")
    return Measure(**json.loads(output))
