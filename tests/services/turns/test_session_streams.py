"""Streams of sessions: messages that never get a turn, and messages that are stored slowly."""

import asyncio
from itertools import count

import pytest
from tests.script_model import called, said, script
from tests.services.session_process import (
    SessionProcess,
    function,
    hurry,
    ids,
    message,
    positions,
    read,
    result,
    types,
)
from tests.store.conftest import Cloud

from stint.store.items import Item
from stint.store.table import Table


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


async def test_a_message_that_is_cancelled_in_line_hides_no_event_of_the_turn_before_it(
    cloud: Cloud, tenant: str
) -> None:
    process = await SessionProcess(cloud, tenant, script(called("ask"), said(), said())).open(function("ask"))
    await process.post(message("one"))
    await process.work()
    [turn] = await process.stored()
    await process.post(message("two"))
    [place] = await process.fixture.store.session_line(*process.ids).read()
    reading = asyncio.create_task(read(await process.open_stream(), "agent.session.turn.completed"))
    await asyncio.sleep(0.3)
    await process.services.turn_requests.cancellation.cancel(process.agent_id, process.session_id, place.message_id)
    await asyncio.sleep(0.3)

    await process.post(result(turn.turn_id, "c0"))
    events = await reading

    refused = types(events).index("turn.cancelled")
    assert types(events)[refused - 1] == "turn.created"
    assert "idle" not in types(events)  # the first turn still waits
    assert len(ids(events)) == len(set(ids(events)))
    for position in positions(events):
        await process.open_stream(str(position))


@pytest.mark.parametrize("number", range(2))
async def test_the_worker_does_not_give_up_a_message_whose_request_is_slow(
    cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    process = await SessionProcess(cloud, tenant, script(said())).open()
    put, puts = Table.put, count()

    async def put_slowly(self: Table, item: Item) -> None:
        if next(puts) == number:  # before the message, or between the message and its place
            await process.work()
        await put(self, item)

    monkeypatch.setattr(Table, "put", put_slowly)
    await process.post(message("one"))
    monkeypatch.undo()
    await process.work()

    assert await process.inputs() == ["one"]
