"""Peak memory of the streaming function compared with the same app on uvicorn, after the same requests."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from infra.bench.client import Api, turn_body
from infra.bench.processes import Launcher
from infra.bench.report import Row

STREAMING = ("turns", "responses")
BIG = "say: done\n" + "x" * 2_000_000


@dataclass(frozen=True)
class Step:
    """A request that may increase the peak."""

    name: str
    method: str
    path: str
    body: object = None


async def measure_memory(launcher: Launcher, front: str) -> list[Row]:
    """Return the peak memory after each step. It is VmHWM of proc_pid_status(5), so this needs Linux."""
    small, large = await asyncio.to_thread(make_sessions, front)
    steps = [
        Step("after a turn", "POST", f"{small}/turn", turn_body("say: done")),
        Step("after a turn of 1,000 words", "POST", f"{small}/turn", turn_body("long: 1000 words")),
        Step("after GET session, three 2 MB turns", "GET", large),
    ]
    async with launcher.function("turns") as function, launcher.uvicorn("direct") as server:
        rows = [Row("idle", "MB", [peak(function.pid)], [peak(server.pid)])]
        for step in steps:
            await function.answer(launcher.event(step.method, step.path, step.body))
            await asyncio.to_thread(Api(server.url).call, step.method, step.path, step.body)
            rows.append(Row(step.name, "MB", [peak(function.pid)], [peak(server.pid)]))
    return rows


async def measure_idle_memory(launcher: Launcher) -> list[Row]:
    """Return the resident memory of each function that waits for its first event. It is VmRSS of proc_pid_status(5)."""
    async with launcher.uvicorn("bare") as server:
        bare = resident(server.pid)
    rows = []
    for name in STREAMING:
        async with launcher.function(name) as function:
            rows.append(Row(f"{name}, before the first event", "MB", [resident(function.pid)], [bare]))
    return rows


def make_sessions(front: str) -> tuple[str, str]:
    """Create an empty and a large session, and return their paths."""
    api = Api(front)
    agent = api.create_agent()
    small, large = api.create_session(agent), api.create_session(agent)
    for _ in range(3):
        api.stream_turn(large, BIG)
    return small, large


def peak(pid: int) -> float:
    """Return the peak memory of a process in MB."""
    return status_field(pid, "VmHWM")


def resident(pid: int) -> float:
    """Return the memory of a process in MB."""
    return status_field(pid, "VmRSS")


def status_field(pid: int, name: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) / 1000
