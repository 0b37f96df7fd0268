"""Cold start of a function's process compared with a bare FastAPI process, interleaved."""

import asyncio
import json
from collections import defaultdict

from infra.bench.client import Api
from infra.bench.processes import Launcher
from infra.bench.report import Row

ROUNDS = 5
NOBODY = "00000000-0000-7000-8000-000000000000"
READS = {
    "turns": ("GET", f"/v1/agents/{NOBODY}/session/{NOBODY}"),
    "agents": ("GET", f"/v1/agents/{NOBODY}"),
    "responses": ("GET", f"/v1/responses/resp_{NOBODY.replace('-', '')}"),
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
    """
    events = {name: launcher.event(*read) for name, read in READS.items()}
    events["worker"] = json.dumps({"Records": [WORKER_MESSAGE]}).encode()
    ready: defaultdict[str, list[float]] = defaultdict(list)
    answered: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        async with launcher.uvicorn("bare") as server:
            ready["bare"].append(server.ready * 1000)
            await asyncio.to_thread(Api(server.url).call, "GET", "/")
            answered["bare"].append(server.elapsed() * 1000)
        for name, event in events.items():
            async with launcher.function(name) as function:
                ready[name].append(function.ready * 1000)
                await function.answer(event)
                answered[name].append(function.elapsed() * 1000)
    return [Row(f"{name}: start to first /next", "ms", ready[name], ready["bare"]) for name in events] + [
        Row(f"{name}: start to first answer", "ms", answered[name], answered["bare"]) for name in events
    ]
