"""Costs of sessions of OpenAI's Agents API in DynamoDB: idle streams, posts, and turns that a stream takes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from secrets import token_hex
from typing import Any

import pytest
from tests.script_model import called, said, script
from tests.services.session_process import CANCEL, SessionProcess, function, hurry, message, read, result, types
from tests.store.conftest import Cloud

from stint.domain.paging import Window
from stint.openai_agents.streamed_turns import PlacedEvent
from stint.store.items import decode, size

WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")

WRITTEN = {"post": 3, "turn": 8, "result": 2, "resumed turn": 6}
MOST_READ = {"post": 10, "turn": 18, "result": 8, "resumed turn": 15}
"""The units of a message, of the turn that a stream takes, of a result, and of the turn that it lets go on."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def written(cloud: Cloud) -> float:
    return sum(cloud.units[name] for name in WRITES)


@contextmanager
def measured_reads(cloud: Cloud) -> Iterator[list[int]]:
    """Yield a list of the read units of each call: one for each 4 KB. The engine's own figure is always 1."""
    units: list[int] = []

    def measure(answer: dict[str, Any]) -> None:
        tables = answer.get("Responses", {}).values()
        found = [*answer.get("Items", []), answer.get("Item", {}), *(item for items in tables for item in items)]
        units.append(max(-(-sum(size(decode(item)) for item in found) // 4096), 1))

    with ExitStack() as stack:
        for name in ("GetItem", "Query", "BatchGetItem"):
            stack.enter_context(cloud.proxy.editing(name, answer=measure))
        yield units


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


async def test_a_list_of_sessions_reads_five_units_for_each_whatever_the_size_of_its_last_turn(
    cloud: Cloud, tenant: str
) -> None:
    answers = script(*[said("An answer")] * 4)
    for length in (10, 100_000, 10, 100_000):
        process = await SessionProcess(cloud, tenant, answers).open()
        await process.post(message(token_hex(length)))
        await process.work()

    with measured_reads(cloud) as units:
        page = await process.services.reader.list(Window(limit=20), None)

    assert sum(units) <= 5 * len(page.data) + 9  # the list of all sessions has eight parts
    assert {each.status for each in page.data} == {"idle"}
    [last] = await process.stored()
    assert last.completed_at is not None
    assert page.data[-1].last_active_at == int(last.completed_at.timestamp())


async def test_a_session_shows_the_same_state_by_its_record_as_by_its_turns(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(called("ask"), said(), [ValueError()])).open(function("ask"))
    shown = [await process.show()]
    for event in (message("one"), CANCEL, message("two"), message("three")):
        await process.post(event)
        shown.append(await process.show())
        await process.work()
        shown.append(await process.show())

    assert [each.status for each in shown] == [
        *("idle", "in_progress", "requires_action", "idle", "idle"),
        *("in_progress", "idle", "in_progress", "idle"),
    ]
    assert [len(each.required_actions) for each in shown] == [0, 0, 1, *[0] * 6]


def has_idle(count: int, events: list[PlacedEvent]) -> bool:
    return types(events).count("idle") == count
