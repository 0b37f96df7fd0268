"""Turns of many sessions at once through the front of `make run`, of one or two trees, interleaved."""

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from http.client import HTTPConnection
from urllib.parse import urlsplit

from infra.bench.client import Measure
from infra.bench.report import Row
from infra.bench.side import Side
from infra.bench.starts import READS
from infra.bench.streams import LONG, SHORT, run_client

ROUNDS = 3
TURNS = {1: 40, 8: 12, 32: 6, 64: 4}
"""Turns of each session, by the number of sessions at once."""
ONE_STREAM = "peak memory of turns, 1 stream"
MANY_STREAMS = "peak memory of turns, 64 open streams"
SLOW = "slow: 4\nsay: done"
STREAMING = ("turns", "responses")
Results = dict[str, list[float]]


async def measure_sides(sides: Sequence[Side]) -> dict[str, Results]:
    """Return the results of each side by the names of `UNITS`."""
    results: dict[str, Results] = {side.name: defaultdict(list) for side in sides}
    for _ in range(ROUNDS):
        for name in STREAMING if sys.platform == "linux" else ():
            for side in sides:
                results[side.name][f"cold answer, {name}"].append(await cold_answer(side, name))
        for side in sides:
            long = await run_client(side.url, 1, 4, LONG)
            results[side.name]["events a second, turn of 1,000 words"].append(long.events)
        for sessions in TURNS:
            for side in sides:
                await measure_sessions(side, sessions, results[side.name])
    if sys.platform == "linux":
        for side in sides:
            await measure_open_streams(side, results[side.name])
    return results


async def measure_open_streams(side: Side, results: Results) -> None:
    """Measure the memory of new processes after one stream, and after many that were open at once."""
    side.kill("turns")
    for row, sessions in ((ONE_STREAM, 1), (MANY_STREAMS, 64)):
        await run_client(side.url, sessions, 1, SLOW)
        results[row].append(side.peak_memory("turns"))


async def measure_sessions(side: Side, sessions: int, results: Results) -> None:
    turns = TURNS[sessions]
    before = side.cpu_seconds("turns") if sys.platform == "linux" else 0.0
    done: Measure = await run_client(side.url, sessions, turns, SHORT)
    if sessions == 1:
        results["time to first event"].append(done.first_event * 1000)
        if sys.platform == "linux":
            spent = side.cpu_seconds("turns") - before
            results["CPU of the function, short turn"].append(spent / (turns + 1) * 1000)
    results[turns_row(sessions)].append(done.turns)
    results[errors_row(sessions)].append(done.errors)


def turns_row(sessions: int) -> str:
    return f"turns a second, {sessions} session{'s' * (sessions > 1)}"


def errors_row(sessions: int) -> str:
    return f"errors, {sessions} session{'s' * (sessions > 1)}"


async def cold_answer(side: Side, function: str) -> float:
    """Return the milliseconds of a request whose function must be started first."""
    side.kill(function)
    return await asyncio.to_thread(answer_time, side.url, *READS[function])


def answer_time(url: str, method: str, path: str) -> float:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    began = time.perf_counter()
    connection.request(method, path)
    connection.getresponse().read()
    elapsed = time.perf_counter() - began
    connection.close()
    return elapsed * 1000


def rows_at_once(results: Results) -> list[Row]:
    """Return the rates, errors and memory of many sessions, with their ratios to one session, and of 64 to 32."""
    one = results[turns_row(1)]
    memory = [Row(MANY_STREAMS, "MB", results[MANY_STREAMS], results[ONE_STREAM])] if results[MANY_STREAMS] else []
    rates = [Row(turns_row(sessions), "/s", results[turns_row(sessions)], one) for sessions in TURNS]
    errors = [Row(errors_row(sessions), "", [sum(results[errors_row(sessions)])], [0]) for sessions in TURNS]
    most = Row("turns a second, 64 to 32 sessions", "/s", results[turns_row(64)], results[turns_row(32)])
    return [*rates, most, *errors, *memory]


def rows_against(ours: Results, base: Results) -> list[Row]:
    """Return every result beside that of the base."""
    return [
        Row(name, "", [sum(values)], [sum(base[name])])
        if name.startswith("errors")
        else Row(name, unit_of(name), values, base[name])
        for name, values in ours.items()
    ]


def unit_of(name: str) -> str:
    units = {"turns": "/s", "events": "/s", "peak": "MB"}
    return units.get(name.split()[0], "ms")
