"""CPU time of a simple streamed turn, of the function and of its floor, interleaved."""

import asyncio

from infra.bench.client import Api, turn_body
from infra.bench.processes import MODEL, Launcher, RunningFunction
from infra.bench.report import Row
from infra.bench.side import cpu_seconds
from infra.bench.streams import SHORT

PROCESSES, SESSIONS, TURNS = 5, 5, 10
"""Processes of each side, sessions of a process, and turns of a session."""
MOST_FLOORS = 2.1
"""Most CPU time of a turn, per that of the floor."""


async def measure_turns(launcher: Launcher, front: str) -> list[Row]:
    """Measure turns in warm processes, alternately. Linux only."""
    pairs: list[tuple[float, float]] = []
    sessions = await asyncio.to_thread(make_sessions, front, 2 * PROCESSES * (SESSIONS + 1))
    for _ in range(PROCESSES):
        async with launcher.function("turns") as product, launcher.floor() as floor:
            for number in range(SESSIONS + 1):
                found = await measure_session(launcher, (product, floor), (sessions.pop(), sessions.pop()))
                pairs += found if number else []  # in its first session, a process is not yet warm
    ours, theirs = map(list, zip(*pairs, strict=True))
    return [Row("a streamed turn", "ms", ours, theirs, MOST_FLOORS, paired=True)]


def make_sessions(front: str, count: int) -> list[str]:
    api = Api(front)
    agent = api.create_agent(MODEL)
    sessions = [api.create_session(agent) for _ in range(count)]
    api.close()
    return sessions


async def measure_session(
    launcher: Launcher, functions: tuple[RunningFunction, RunningFunction], sessions: tuple[str, str]
) -> list[tuple[float, float]]:
    """Return the CPU times of the turns of both functions, each in its session, without the first turn.

    For that one the product reads the history, which it remembers for the others.
    """
    events = [launcher.event("POST", f"{session}/turn", turn_body(SHORT)) for session in sessions]
    one, other = zip(functions, events, strict=True)
    return [(await cpu_time(*one), await cpu_time(*other)) for _ in range(TURNS + 1)][1:]


async def cpu_time(function: RunningFunction, event: bytes) -> float:
    """Run a turn, and return its milliseconds of CPU time."""
    before = cpu_seconds(function.pid)
    answer = await function.answer(event)
    if b'"turn_complete"' not in answer:
        raise RuntimeError(f"no complete turn: {answer[-500:]!r}")
    return (cpu_seconds(function.pid) - before) * 1000
