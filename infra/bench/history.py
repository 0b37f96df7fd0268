"""The first event and the first token of a turn, in a new session and after many turns, interleaved.

The same for the first event of a response that continues a long chain.

The model is a server of chat completions on this machine. The time that it takes to read a request is subtracted from
that to the first token.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from infra.bench.client import Api
from infra.bench.model_server import ModelServer
from infra.bench.processes import MODEL
from infra.bench.report import Row
from infra.bench.responses import LINKS, chain
from infra.bench.side import Side
from infra.bench.streams import SHORT

ROUNDS = 10
HISTORY = 100
"""Prior turns of the long session. They are run before, one after the other, and not measured."""
Results = dict[str, list[float]]


async def measure_history(sides: Sequence[Side], turns: int, model: ModelServer) -> dict[str, Results]:
    """Return the times of each side in milliseconds, by the names of `names_of`."""
    return await asyncio.to_thread(measure, sides, turns, model)


def measure(sides: Sequence[Side], turns: int, model: ModelServer) -> dict[str, Results]:
    results: dict[str, Results] = {side.name: defaultdict(list) for side in sides}
    apis = {side.name: Api(side.url) for side in sides}
    agents = {name: create_agent(api) for name, api in apis.items()}
    long = {name: session_after(api, agents[name], turns) for name, api in apis.items()}
    last = {name: chain(api) for name, api in apis.items()}
    for _ in range(ROUNDS):
        for name, api in apis.items():
            for prior, session in ((0, api.create_session(agents[name])), (turns, long[name])):
                turn = api.stream_turn(session, SHORT)
                first_event, first_token = names_of(prior)
                results[name][first_event].append(turn.first * 1000)
                results[name][first_token].append((turn.token - model.reading) * 1000)
            response, _ = api.stream_response(SHORT, last[name])
            results[name][f"first event, {LINKS} links"].append(response.first * 1000)
    for api in apis.values():
        api.close()
    return results


def create_agent(api: Api) -> str:
    agent = api.create_agent(MODEL)
    api.close()  # it is idle while the session of the other side is made
    return agent


def session_after(api: Api, agent: str, turns: int) -> str:
    session = api.create_session(agent)
    for _ in range(turns):
        api.stream_turn(session, SHORT)
    api.close()
    return session


def names_of(prior: int) -> tuple[str, str]:
    return f"first event, {prior} prior turns", f"first token, {prior} prior turns"


def rows_after(results: Results, turns: int) -> list[Row]:
    """Compare the long session with new ones."""
    pairs = zip(names_of(turns), names_of(0), strict=True)
    return [Row(name, "ms", results[name], results[new]) for name, new in pairs]
