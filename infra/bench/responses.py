"""Streamed responses compared with streamed turns of the same content, interleaved."""

import asyncio
from collections.abc import Callable

from infra.bench.client import Api, Turn
from infra.bench.report import Row
from infra.bench.streams import LONG, SHORT, row

ROUNDS = 20
LINKS = 100
ITEMS = 256
ITEMS_AT_ONCE = 16
Run = Callable[[], Turn]


async def measure_responses(front: str) -> list[Row]:
    """Measure the time to the first and the last event, a thousand words, and a long chain, in warm processes."""
    return await asyncio.to_thread(measure, front)


def measure(front: str) -> list[Row]:
    api = Api(front)
    agent = api.create_agent()
    session = api.create_session(agent)
    short = pairs(lambda: api.stream_response(SHORT)[0], lambda: api.stream_turn(session, SHORT), ROUNDS)
    long = pairs(lambda: api.stream_response(LONG)[0], lambda: api.stream_turn(session, LONG), 3)
    last = chain(api)
    linked = pairs(lambda: api.stream_response(SHORT, last)[0], lambda: api.stream_response(SHORT)[0], ROUNDS)
    talk = conversation(api)
    held = pairs(
        lambda: api.stream_response(SHORT, conversation=talk)[0], lambda: api.stream_response(SHORT)[0], ROUNDS
    )
    api.close()
    return [
        row("time to first event", "ms", [[each.first * 1000 for each in pair] for pair in short]),
        row("time to last event", "ms", [[each.end * 1000 for each in pair] for pair in short]),
        row("events a second, 1,000 words", "/s", [[rate(each) for each in pair] for pair in long]),
        row(f"first event, {LINKS} links to none", "ms", [[each.first * 1000 for each in pair] for pair in linked]),
        row(f"first event, {ITEMS} items to none", "ms", [[each.first * 1000 for each in pair] for pair in held]),
    ]


def pairs(one: Run, other: Run, rounds: int) -> list[list[Turn]]:
    one()
    other()
    return [[one(), other()] for _ in range(rounds)]


def rate(turn: Turn) -> float:
    return (turn.events - 1) / (turn.end - turn.first)


def conversation(api: Api) -> str:
    """Make a conversation of short messages, and return its id."""
    made = str(api.post("/v1/conversations", {})["id"])
    for start in range(0, ITEMS, ITEMS_AT_ONCE):
        places = range(start, start + ITEMS_AT_ONCE)
        items = [{"role": ("user", "assistant")[place % 2], "content": f"This is message {place}."} for place in places]
        api.post(f"/v1/conversations/{made}/items", {"items": items})
    return made


def chain(api: Api) -> str:
    """Make a chain of responses, and return the id of its last one. The connection is closed then."""
    last = ""
    for _ in range(LINKS):
        last = api.stream_response(SHORT, last)[1]
    api.close()
    return last
