"""`make price`: a million turns of 3 s and of 30 s in dollars, from the units that they consume.

A turn is the second one of its session in a process, which remembers the session. Its CPU time on a whole core is an
assumption (`CPU_MS`), as in docs/memory.md; the model costs nothing here. Its logs are the lines of the function
(`tests/system/test_conversation.py` holds their size), Lambda's start and report, and the line of API Gateway.
"""

import asyncio
import random
import sys
from dataclasses import dataclass
from functools import partial

from infra.bench.cost import cpu_seconds_at
from infra.bench.scale.fleet import Environment, Fleet, Session, run_turn
from infra.bench.scale.load import Load
from infra.bench.scale.report import kind_of
from infra.bench.scale.table_engine import TableEngine
from infra.bench.scale.virtual_time import VirtualClock, run_virtually

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.prices import InfrastructurePrices

MILLION = 1_000_000
MEMORY_MB, CPU_MS = 176, 10.0
GATEWAY = 3.50
"""Dollars per million requests of a REST API in us-east-1: https://aws.amazon.com/api-gateway/pricing/"""
LOGS = 0.50
"""Dollars per GB of logs in us-east-1: https://aws.amazon.com/cloudwatch/pricing/"""
FUNCTION_LOG_BYTES, OTHER_LOG_BYTES = 1_600, 1_400
"""Bytes that a turn logs: by its function, and by Lambda and API Gateway, which is an assumption."""
TURNS = (Load(sessions=1, silent=0, words=3), Load(sessions=1, silent=5, words=25))


@dataclass(frozen=True)
class Units:
    """The units of a turn, by the kind of their key."""

    writes: dict[str, float]
    reads: dict[str, float]

    def minus(self, earlier: "Units") -> "Units":
        writes = {kind: units - earlier.writes.get(kind, 0) for kind, units in self.writes.items()}
        return Units(writes, {kind: units - earlier.reads.get(kind, 0) for kind, units in self.reads.items()})

    @property
    def stops(self) -> float:
        return sum(units for kind, units in self.reads.items() if kind.startswith("T#stop"))


async def count_units(clock: VirtualClock, load: Load) -> Units:
    """Run two turns of a session, and return what the second one consumes."""
    engine = TableEngine(clock.read)
    await engine.create()
    services = Environment(Fleet(engine, load.settings)).make_services("tenant")
    agent_id = await services.agents.create(AgentConfig(model="scripted/demo", instructions="Answer briefly."))
    session = Session("tenant", agent_id, await services.sessions.create(agent_id, "price"))
    found = []
    for _ in range(2):
        result = await run_turn(services, session, load.text)
        if result.error:
            raise RuntimeError(f"A turn failed: {result.error}")
        await asyncio.sleep(1)
        buckets = engine.capacity.keys.items()  # one key of each kind
        writes = {kind_of(pk): bucket.writes.total for pk, bucket in buckets}
        found.append(Units(writes, {kind_of(pk): bucket.reads.total for pk, bucket in buckets}))
    await engine.drop()
    return found[1].minus(found[0])


def dollars(load: Load, units: Units) -> dict[str, float]:
    """Return the prices of a million turns."""
    prices = InfrastructurePrices()
    waiting = load.seconds * MEMORY_MB / 1024 * prices.gb_seconds * MILLION
    busy = cpu_seconds_at(CPU_MS, MEMORY_MB) * MEMORY_MB / 1024 * prices.gb_seconds * MILLION
    parts = {
        "memory while waiting": waiting,
        "CPU time": busy,
        "API Gateway, invocations": GATEWAY + prices.invocations,
        "logs": (FUNCTION_LOG_BYTES + OTHER_LOG_BYTES) * MILLION / 1e9 * LOGS,
        "write units": sum(units.writes.values()) * prices.write_units,
        "read units": sum(units.reads.values()) * prices.read_units,
        "of these, stops": units.stops * prices.read_units,
    }
    parts["sum"] = sum(parts.values()) - parts["of these, stops"]
    return parts


def table() -> str:
    """Return the prices of both turns in Markdown."""
    random.seed(1)  # a process compares its copy of the stops after a random time
    counted = [run_virtually(partial(count_units, load=load)) for load in TURNS]
    columns = [dollars(load, units) for load, units in zip(TURNS, counted, strict=True)]
    rows = [f"| a million turns of | {' | '.join(f'{load.seconds:g} s' for load in TURNS)} |", "|---|---|---|"]
    for name in columns[0]:
        notes = {
            "write units": [f" ({sum(units.writes.values()):g} each)" for units in counted],
            "read units": [f" ({sum(units.reads.values()):g} each)" for units in counted],
        }.get(name, ["", ""])
        cells = [f"${column[name]:.2f}{note}" for column, note in zip(columns, notes, strict=True)]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    thousand = " | ".join(f"${column['sum'] / 1000:.3f}" for column in columns)
    return "\n".join([*rows, f"| a thousand turns | {thousand} |"])


if __name__ == "__main__":
    print(table())
    sys.exit(0)
