"""Costs of sessions of OpenAI's Agents API in DynamoDB: idle streams, posts, and turns that a stream takes."""

from functools import partial

import pytest
from tests.script_model import called, said, script
from tests.services.session_process import SessionProcess, function, hurry, message, read, result, types
from tests.store.conftest import Cloud

from stint.openai_agents.streamed_turns import PlacedEvent

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")

WRITTEN = {"post": 3, "turn": 8, "result": 2, "resumed turn": 6}
MOST_READ = {"post": 10, "turn": 18, "result": 8, "resumed turn": 15}
"""The units of a message, of the turn that a stream takes, of a result, and of the turn that it lets go on."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def written(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in WRITES)


def read_units(cloud: Cloud) -> float:
    return sum(units for name, units in cloud.units.items() if name not in WRITES)


async def test_an_idle_stream_reads_half_a_unit_a_poll_and_writes_nothing(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(said())).open()
    await process.post(message("one"))
    await process.work()
    stream = await process.open_stream(seconds=0.6)
    cloud.forget()

    assert await read(stream, "never") == []

    polls = cloud.calls["GetItem"]
    assert polls > 5
    assert read_units(cloud) <= 0.5 * polls + 8  # the first poll reads what has happened
    assert written(cloud) == 0


async def test_a_stream_of_a_waiting_turn_with_a_message_in_line_writes_nothing(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(called("ask"))).open(function("ask"))
    await process.post(message("one"))
    await process.work()
    await process.post(message("two"))
    stream = await process.open_stream(seconds=0.6)
    cloud.forget()

    await read(stream, "never")

    polls = cloud.calls["GetItem"]
    assert polls > 5
    assert read_units(cloud) <= 1.5 * polls + 15  # of the session and of its line
    assert written(cloud) == 0


async def test_the_cost_of_a_message_and_of_the_turn_that_a_stream_takes(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(said(), said(), called("ask"), said())).open(function("ask"))
    await process.post(message("one"))
    await process.work()
    stream = await process.open_stream(seconds=30)
    cloud.forget()

    await process.post(message("two"))
    posted = written(cloud), read_units(cloud)
    cloud.forget()
    await read(stream, "agent.session.idle")
    taken = written(cloud), read_units(cloud)
    await process.post(message("three"))
    await process.work()
    turn = (await process.stored())[-1]
    stream = await process.open_stream(seconds=30)
    await read(stream, "agent.session.requires_action")
    cloud.forget()
    await process.post(result(turn.turn_id, "c0"))
    answered = written(cloud), read_units(cloud)
    cloud.forget()
    await read(stream, "agent.session.idle")
    resumed = written(cloud), read_units(cloud)

    costs = {"post": posted, "turn": taken, "result": answered, "resumed turn": resumed}
    assert {name: units for name, (units, _) in costs.items()} == WRITTEN
    for name, (_, units) in costs.items():
        assert units <= MOST_READ[name], (name, units)


async def test_a_replay_of_many_turns_reads_the_session_as_often_as_one_of_few(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(*[said()] * 8)).open()
    for number in range(8):
        await process.post(message(str(number)))
        await process.work()
    turns = await process.stored()

    costs = []
    for first in (5, 0):
        stream, left = await process.open_stream(f"{turns[first].turn_id}:0:0"), 8 - first
        cloud.forget()
        events = await read(stream, partial(has_idle, left))
        costs.append(cloud.calls["GetItem"])
        assert [each.event.session.usage for each in events if each.event.type == "agent.session.idle"]

    assert costs[0] == costs[1]


def has_idle(count: int, events: list[PlacedEvent]) -> bool:
    return types(events).count("idle") == count
