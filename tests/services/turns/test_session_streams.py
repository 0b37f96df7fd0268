"""Streams of sessions: messages that never get a turn, and messages that are stored slowly."""

import asyncio
from functools import partial
from itertools import count

import pytest
from starlette.types import Message
from tests.script_model import STOP, Part, called, said, script
from tests.services.session_process import (
    SHOP,
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

from stint.domain.errors import Conflict
from stint.domain.inference import TextChunk
from stint.domain.llama_stack.turns import TurnStatus
from stint.domain.run_outcome import ErrorInfo
from stint.openai_agents.routes.sessions import answer_stream
from stint.openai_agents.session_stream import StreamTimes
from stint.openai_agents.streamed_turns import PlacedEvent
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


async def test_a_stream_that_is_dropped_at_any_event_is_joined_without_a_gap(cloud: Cloud, tenant: str) -> None:
    answers = [called("buy"), said()]

    async def make() -> SessionProcess:
        process = await SessionProcess(cloud, tenant, script(*answers)).open(SHOP)
        await process.post(message("one"))
        return process

    whole = await read(await (await make()).open_stream(), "agent.session.idle")
    for number in range(1, len(whole)):
        process = await make()
        first = await read(await process.open_stream(), partial(has_count, number))
        stream = await process.other_process(script()).open_stream(str(first[-1].position))
        rest = await read(stream, "agent.session.idle")

        assert types(first + rest) == types(whole), number
        assert len(set(ids(first + rest))) == len(whole), number
        assert process.fixture.fake_mcp.calls == ["buy"]


def has_count(count: int, events: list[PlacedEvent]) -> bool:
    return len(events) == count


async def test_each_stream_shows_a_message_that_one_of_them_has_refused(cloud: Cloud, tenant: str) -> None:
    process = await SessionProcess(cloud, tenant, script(said())).open()
    await process.post(message("one"))
    await process.work()
    first, last = await process.stored(), await process.open_stream()
    others = [await process.open_stream() for _ in range(2)]
    events = await read(await process.open_stream(f"{first[0].turn_id}:0:0"), "agent.session.idle")
    await process.post(message("two"))
    [place] = await process.fixture.store.session_line(*process.ids).read()
    await process.fixture.store.session_line(*process.ids).fail(place.message_id, ErrorInfo.of(Conflict("no")))

    seen = [await read(stream, "agent.session.idle") for stream in (last, *others)]
    joined = await process.open_stream(str(positions(events)[-1]))
    seen.append(await read(joined, "agent.session.idle"))

    assert [types(each) for each in seen] == [["turn.created", "turn.failed", "idle"]] * 4
    assert len({tuple(ids(each)) for each in seen}) == 1
    assert await read(await process.open_stream(seconds=0.2), "never") == []


async def test_a_model_does_not_get_a_web_search_that_is_disabled(cloud: Cloud, tenant: str) -> None:
    model = script(said())
    process = await SessionProcess(cloud, tenant, model).open({"type": "web_search", "mode": "disabled"})
    await process.post(message("one"))
    await process.work()

    assert [turn.status for turn in await process.stored()] == [TurnStatus.completed]
    assert not model.requests[0].tools
    assert [tool.type for tool in (await process.show()).agent.tools] == ["web_search"]


async def test_a_turn_whose_client_stops_reading_ends_and_so_does_its_response(cloud: Cloud, tenant: str) -> None:
    answer: list[Part] = [*[TextChunk("word ")] * 2_000, STOP]
    process = await SessionProcess(cloud, tenant, script(answer)).open()
    await process.post(message("one"))
    stream, now = await process.open_stream(), asyncio.get_running_loop().time()
    stream.times = StreamTimes(now + 4, now + 5, now + 5)
    sent: list[Message] = []

    async def send(sending: Message) -> None:
        sent.append(sending)
        if len(sent) > 5:
            await asyncio.Event().wait()

    response = answer_stream(stream.events(), process.services, stream, pads=True)
    async with asyncio.timeout(60):
        await response.stream_response(send)

    assert [turn.status for turn in await process.stored()] == [TurnStatus.completed]
    assert len(sent) == 6  # no frame is made before the one before it is read
