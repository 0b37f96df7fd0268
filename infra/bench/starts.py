"""Cold start of a function's process compared with a bare FastAPI process, interleaved."""

import asyncio
import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field

from infra.bench.client import Api, turn_body
from infra.bench.processes import MODEL, Launcher, Running
from infra.bench.report import Row
from infra.bench.side import cpu_seconds
from infra.bench.streams import SHORT
from infra.bench.turns import make_sessions

ROUNDS = 9
BETWEEN_BASES = 2
"""Functions that are started after each bare process and floor, with which they are compared."""
BASES = ("bare", "floor")
MOST_OF_BARE = {
    "turns": 0.5,
    "responses": 0.64,
    "knowledge": 0.68,
    "october": 0.68,
    "openai_agents": 0.62,
    "protocols": 0.5,
}
"""Most CPU time of the start of a function, per that of the bare process.

That of `openai_agents` is the limit of `responses` times what both start in, one per the other: 0.97.
"""
NOBODY = "00000000-0000-7000-8000-000000000000"
READS = {
    "turns": ("GET", f"/v1/agents/{NOBODY}/session/{NOBODY}"),
    "agents": ("GET", f"/v1/agents/{NOBODY}"),
    "responses": ("GET", f"/v1/responses/resp_{NOBODY.replace('-', '')}"),
    "october": ("GET", "/routes/list"),
    "openai_agents": ("GET", f"/v1/agents/sessions/{NOBODY}"),
    "protocols": ("GET", f"/v1/agents/{NOBODY}/a2a/.well-known/agent-card.json"),
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


def samples() -> defaultdict[str, list[float]]:
    return defaultdict(list)


@dataclass
class Times:
    """Milliseconds by process: until it is ready, until its first answer, and its CPU time until it is ready."""

    ready: defaultdict[str, list[float]] = field(default_factory=samples)
    answered: defaultdict[str, list[float]] = field(default_factory=samples)
    busy: defaultdict[str, list[float]] = field(default_factory=samples)
    before: defaultdict[str, list[float]] = field(default_factory=samples)
    """CPU times of the last base before each start of a function, by `function base`."""

    def add_start(self, name: str, process: Running) -> None:
        self.ready[name].append(process.ready * 1000)
        if sys.platform == "linux":
            self.busy[name].append(cpu_seconds(process.pid) * 1000)
            for base in () if name in BASES else BASES:
                self.before[f"{name} {base}"].append(self.busy[base][-1])

    def cpu_row(self, label: str, name: str, base: str, most: float | None = None) -> Row:
        """Return the CPU time of the starts of a function beside that of a base."""
        return Row(label, "ms", self.busy[name], self.before[f"{name} {base}"], most, paired=True)


async def measure_starts(launcher: Launcher) -> Times:
    """Measure from process start to the first /next, and to the end of a first request that reads one table.

    The floor has no such request. The bare process is ready once it listens. The registry does not read a table: its
    request is the health check. CPU time is measured, too, on Linux: unlike the duration, it hardly depends on what
    else runs on the machine.
    """
    events = {name: launcher.event(*read) for name, read in READS.items()}
    events["worker"] = json.dumps({"Records": [WORKER_MESSAGE]}).encode()
    times = Times()
    for _ in range(ROUNDS):
        for place, (name, event) in enumerate(events.items()):
            if place % BETWEEN_BASES == 0:
                async with launcher.floor() as floor:
                    times.add_start("floor", floor)
                async with launcher.uvicorn("bare") as server:
                    times.add_start("bare", server)
                    await asyncio.to_thread(Api(server.url).call, "GET", "/")
                    times.answered["bare"].append(server.elapsed() * 1000)
            async with launcher.function(name) as function:
                times.add_start(name, function)
                await function.answer(event)
                times.answered[name].append(function.elapsed() * 1000)
    return times


async def measure_first_tokens(launcher: Launcher, front: str) -> list[Row]:
    """Measure from process start to the first token of a first run, and to the first answer of the bare process."""
    sessions = await asyncio.to_thread(make_sessions, front, ROUNDS)
    found, bare = samples(), list[float]()
    for session in sessions:
        async with launcher.uvicorn("bare") as server:
            await asyncio.to_thread(Api(server.url).call, "GET", "/")
            bare.append(server.elapsed() * 1000)
        for name, path, body in (
            ("turns", f"{session}/turn", turn_body(SHORT)),
            ("responses", "/v1/responses", {"model": MODEL, "input": SHORT, "stream": True}),
        ):
            async with launcher.function(name) as function:
                found[name].append(1000 * await function.first_token(launcher.event("POST", path, body)))
    return [Row(f"{name}: start to first token", "ms", times, bare, paired=True) for name, times in found.items()]


def rows_of(times: Times) -> list[Row]:
    """Compare the functions with the bare process."""
    figures = {"start to first /next": times.ready, "start to first answer": times.answered}
    rows = [
        Row(f"{name}: {figure}", "ms", found[name], found["bare"])
        for figure, found in figures.items()
        for name in (*READS, "worker")
    ]
    for name in (*READS, "worker") if times.busy else ():
        rows.append(times.cpu_row(f"{name}: CPU time to first /next", name, "bare", MOST_OF_BARE.get(name)))
    return rows


def rows_of_floor(times: Times) -> list[Row]:
    """Compare the CPU time of starts with that of the floor's start."""
    return [times.cpu_row(f"start of {name}", name, "floor") for name in MOST_OF_BARE]
