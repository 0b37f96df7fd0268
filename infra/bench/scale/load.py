"""The load: sessions of agents of tenants, each of which runs one turn at a time that arrives at random.

Tenants and agents are drawn by Zipf's law: the second one has half the sessions of the first one, the third one a
third.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from infra.bench.scale.capacity import OF_A_KEY, OF_A_TABLE, Capacity, Limit
from infra.bench.scale.fleet import Fleet, Session, TurnResult
from infra.bench.scale.table_engine import TableEngine
from infra.bench.scale.virtual_time import VirtualClock

from stint.domain.llama_stack.agents import AgentConfig
from stint.settings import Settings
from stint.store.keys import KeyLayout

CREATIONS = 100
"""Sessions that are created at once, before the limits apply."""


@dataclass(frozen=True)
class Load:
    """Sessions that run `turns` turns each, one after the other.

    The first ones arrive `within` so many seconds. The model is silent first, and then takes a second for each word.
    """

    sessions: int = 10_000
    tenants: int = 1
    agents: int = 1
    within: float = 10.0
    silent: float = 5.0
    words: int = 25
    turns: int = 1
    table: Limit = OF_A_TABLE
    key: Limit = OF_A_KEY
    layout: KeyLayout = "spread"
    limits: str = ""
    """The limits of tenants, as JSON (`STINT_TENANTS`)."""

    @property
    def settings(self) -> Settings:
        """The settings of the function: the defaults, with the scripted model."""
        model = Settings(auth="none", scripted_models=True, default_model="scripted/demo", scripted_word_seconds=1.0)
        return model.model_copy(update={"key_layout": self.layout, "tenants": self.limits})

    @property
    def text(self) -> str:
        return f"slow: {self.silent:g}\nlong: {self.words}"

    @property
    def seconds(self) -> float:
        """The time that the model takes."""
        return self.silent + self.words


@dataclass(frozen=True)
class Outcome:
    """The results of a load. `in_flight` is the most turns at once, `arrivals` the most that began in a second."""

    load: Load
    fleet: Fleet
    capacity: Capacity
    results: Sequence[TurnResult]
    in_flight: int
    arrivals: int
    began: float
    ended: float


def shares(count: int) -> list[float]:
    """Return the cumulated weights of Zipf's law."""
    return list(accumulate(1 / rank for rank in range(1, count + 1)))


async def create_sessions(fleet: Fleet, load: Load, chance: random.Random) -> list[Session]:
    """Create agents and sessions, as their routes do."""
    environment, free = fleet.take(), asyncio.Semaphore(CREATIONS)
    config = AgentConfig(model="scripted/demo", instructions="Answer briefly.")
    names = [f"tenant-{at}" for at in range(load.tenants)]
    agents = {
        name: [await environment.make_services(name).agents.create(config) for _ in range(load.agents)]
        for name in names
    }

    async def create(tenant: str, agent_id: str) -> Session:
        async with free:
            session_id = await environment.make_services(tenant).sessions.create(agent_id, "scale")
        return Session(tenant, agent_id, session_id)

    chosen = chance.choices(names, cum_weights=shares(load.tenants), k=load.sessions)
    pairs = [(name, chance.choices(agents[name], cum_weights=shares(load.agents))[0]) for name in chosen]
    return await asyncio.gather(*(create(*pair) for pair in pairs))


async def run_load(clock: VirtualClock, load: Load) -> Outcome:
    """Create the sessions, and run their turns under the limits."""
    chance = random.Random(1)  # noqa: S311 - the same load in each run
    engine = TableEngine(clock.read)
    await engine.create()
    fleet = Fleet(engine, load.settings)
    sessions = await create_sessions(fleet, load, chance)
    fleet.replace(load.sessions)
    engine.capacity = Capacity(load.key, load.table)
    began, running, most = clock.now, 0, 0
    starts = [chance.uniform(0, load.within) for _ in sessions]

    async def run(session: Session, start: float) -> list[TurnResult]:
        nonlocal running, most
        await asyncio.sleep(start)
        running += 1
        most = max(most, running)
        try:
            return [await fleet.run_turn(session, load.text) for _ in range(load.turns)]
        finally:
            running -= 1

    found = await asyncio.gather(*(run(*each) for each in zip(sessions, starts, strict=True)))
    await engine.drop()
    arrivals = max(sum(int(start) == second for start in starts) for second in range(int(load.within) + 1))
    results = [result for each in found for result in each]
    return Outcome(load, fleet, engine.capacity, results, most, arrivals, began, clock.now)
