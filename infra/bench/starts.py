"""Cold start of a function's process compared with a bare FastAPI process, interleaved."""

import asyncio
import json
import sys
from collections import defaultdict

from infra.bench.client import Api
from infra.bench.processes import Launcher
from infra.bench.report import Row
from infra.bench.side import cpu_seconds

ROUNDS = 5
NOBODY = "00000000-0000-7000-8000-000000000000"
READS = {
    "turns": ("GET", f"/v1/agents/{NOBODY}/session/{NOBODY}"),
    "agents": ("GET", f"/v1/agents/{NOBODY}"),
    "responses": ("GET", f"/v1/responses/resp_{NOBODY.replace('-', '')}"),
    "october": ("GET", "/routes/list"),
    "knowledge": ("GET", f"/v1/files/file-{NOBODY.replace('-', '')}"),
    "registry": ("GET", "/v1/health"),
}
WORKER_TASK = {"kind": "delete", "tenant": "bench", "agent_id": NOBODY, "session_id": NOBODY}
WORKER_MESSAGE = {
    "messageId": NOBODY,
    "receiptHandle": "none",
    "body": json.dumps(WORKER_TASK),
    "attributes": {"ApproximateReceiveCount": "1"},
    "messageAttributes": {},
    "eventSource": "aws:sqs",
}


async def measure_starts(launcher: Launcher) -> list[Row]:
    """Measure from process start to the first /next, and to the end of a first request that reads one table.

    The bare process is ready once it listens. The registry does not read a table: its request is the health check.
    CPU time is measured, too, on Linux: unlike the duration, it hardly depends on what else runs on the machine.
    """
    events = {name: launcher.event(*read) for name, read in READS.items()}
    events["worker"] = json.dumps({"Records": [WORKER_MESSAGE]}).encode()
    ready: defaultdict[str, list[float]] = defaultdict(list)
    answered: defaultdict[str, list[float]] = defaultdict(list)
    busy: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        async with launcher.uvicorn("bare") as server:
            ready["bare"].append(server.ready * 1000)
            busy["bare"] += cpu_milliseconds(server.pid)
            await asyncio.to_thread(Api(server.url).call, "GET", "/")
            answered["bare"].append(server.elapsed() * 1000)
        for name, event in events.items():
            async with launcher.function(name) as function:
                ready[name].append(function.ready * 1000)
                busy[name] += cpu_milliseconds(function.pid)
                await function.answer(event)
                answered[name].append(function.elapsed() * 1000)
    figures = {"start to first /next": ready, "start to first answer": answered}
    if sys.platform == "linux":
        figures["CPU time to first /next"] = busy
    return [
        Row(f"{name}: {figure}", "ms", found[name], found["bare"])
        for figure, found in figures.items()
        for name in events
    ]


def cpu_milliseconds(pid: int) -> list[float]:
    """Return the CPU time of a process as a list, empty if the system does not show it."""
    return [cpu_seconds(pid) * 1000] if sys.platform == "linux" else []
