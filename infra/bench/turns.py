"""CPU time of a simple streamed turn, of the function and of its floor, interleaved."""

import asyncio

from infra.bench.client import Api, turn_body
from infra.bench.history import MODEL
from infra.bench.processes import Launcher, RunningFunction
from infra.bench.report import Row
from infra.bench.side import cpu_seconds
from infra.bench.streams import SHORT

ROUNDS, TURNS = 20, 10
MOST_FLOORS = 2.1
"""Most CPU time of a turn, per that of the floor."""


async def measure_turns(launcher: Launcher, front: str) -> list[Row]:
    """Measure turns in warm processes. Linux only.

    Each round begins new sessions, and their first turn is not measured: for it the product reads the history.
    """
    spent: tuple[list[float], list[float]] = ([], [])
    async with launcher.function("turns") as product, launcher.floor() as floor:
        sessions = await asyncio.to_thread(make_sessions, front, 2 * (ROUNDS + 1))
        for function in (product, floor):
            await milliseconds_of_turn(launcher, function, sessions.pop())
        for _ in range(ROUNDS):
            for function, found in zip((product, floor), spent, strict=True):
                found.append(await milliseconds_of_turn(launcher, function, sessions.pop()))
    return [Row("a streamed turn", "ms", *spent, MOST_FLOORS)]


def make_sessions(front: str, count: int) -> list[str]:
    api = Api(front)
    agent = api.create_agent(MODEL)
    sessions = [api.create_session(agent) for _ in range(count)]
    api.close()
    return sessions


async def milliseconds_of_turn(launcher: Launcher, function: RunningFunction, session: str) -> float:
    """Return the CPU time of a turn in a session that the process remembers."""
    event = launcher.event("POST", f"{session}/turn", turn_body(SHORT))
    await function.answer(event)
    before = cpu_seconds(function.pid)
    for _ in range(TURNS):
        answer = await function.answer(event)
        if b'"turn_complete"' not in answer:
            raise RuntimeError(f"no complete turn: {answer[-500:]!r}")
    return (cpu_seconds(function.pid) - before) * 1000 / TURNS
