import asyncio
import json

import pytest
from tests.script_model import STOP, called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, text_of, types_of

from stint.domain.errors import InvalidRequest
from stint.domain.inference import ReasoningChunk, RefusalChunk, TextChunk
from stint.services.responses.closing_record import closing_record
from stint.services.responses.recovery import cancelled


async def test_the_words_of_one_text_are_stored_as_few_events(make_worker_fixture: MakeWorkerFixture) -> None:
    words = [TextChunk(f"word{number} ") for number in range(200)]
    worker_fixture = make_worker_fixture(script([*words, STOP]))
    response_id = await worker_fixture.create(stream=True)

    await worker_fixture.run(response_id)

    events = await worker_fixture.stored_events(response_id)
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) < 10
    assert text_of(events) == "".join(word.text for word in words)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


async def test_who_follows_sees_each_event_soon_and_the_end(make_worker_fixture: MakeWorkerFixture) -> None:
    gate = asyncio.Event()
    worker_fixture = make_worker_fixture(script([TextChunk("one "), gate, TextChunk("two"), STOP]))
    response_id = await worker_fixture.create(stream=True)
    following = asyncio.create_task(worker_fixture.follow(response_id))
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.wait_for_stored_events(response_id, "one ")

    gate.set()
    await working
    events = await following

    assert types_of(events)[:3] == ["created", "queued", "in_progress"]
    assert types_of(events)[-1] == "completed"
    assert text_of(events) == "one two"
    assert [event["response"]["status"] for event in events[:3]] == ["queued", "queued", "in_progress"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_events_behind_any_number_are_the_same(
    make_worker_fixture: MakeWorkerFixture, streamed: bool
) -> None:
    answer = [ReasoningChunk("Hm."), *called("ask_user", "buy", text="Let me see.")]
    worker_fixture = make_worker_fixture(script(answer, said("Done")))
    response_id = await worker_fixture.create(stream=streamed, tools=[MCP_TOOL, FUNCTION])
    await worker_fixture.run(response_id)

    whole = await worker_fixture.follow(response_id)

    assert types_of(whole)[-1] == "completed"
    for after in range(len(whole)):
        assert await worker_fixture.follow(response_id, after) == whole[after + 1 :]
    for after in (len(whole), len(whole) + 5):
        with pytest.raises(InvalidRequest, match=f"has {len(whole)} events") as refused:
            await worker_fixture.follow(response_id, after)
        assert refused.value.param == "starting_after"


async def test_a_response_that_was_not_created_as_a_stream_is_told_item_by_item(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    gate = asyncio.Event()
    worker_fixture = make_worker_fixture(script(called("buy"), [gate, *said("Bought it")]))
    response_id = await worker_fixture.create(tools=[MCP_TOOL])
    before = await worker_fixture.follow(response_id, seconds=0.5)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.until_stored(response_id, 2)
    assert len((await worker_fixture.stored(response_id)).records) == 2
    between = await worker_fixture.follow(response_id, seconds=0.5)
    gate.set()
    await working

    events = await worker_fixture.follow(response_id)

    assert types_of(before) == ["created", "queued"]
    assert between == events[: len(between)]
    assert types_of(between)[-1] == "output_item.done"
    assert text_of(events) == "Bought it"
    assert await worker_fixture.stored_events(response_id) == []


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_stream_of_a_response_that_was_cancelled_ends(
    make_worker_fixture: MakeWorkerFixture, streamed: bool
) -> None:
    model = script([TextChunk("half "), asyncio.Event()])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(stream=streamed)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()
    following = asyncio.create_task(worker_fixture.follow(response_id))
    await asyncio.sleep(0.5)

    await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    events = await following
    await working

    assert types_of(events)[-1] == "failed"
    assert events[-1]["response"]["status"] == "cancelled"
    assert types_of(events)[2] == "in_progress"
    assert await worker_fixture.follow(response_id) == events


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_stream_of_a_response_that_was_cancelled_in_the_queue_ends(
    make_worker_fixture: MakeWorkerFixture, streamed: bool
) -> None:
    worker_fixture = make_worker_fixture(script())
    response_id = await worker_fixture.create(stream=streamed, tools=[MCP_TOOL])

    await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    events = await worker_fixture.follow(response_id)

    assert events[-1]["response"]["status"] == "cancelled"


@pytest.mark.parametrize("part", [ReasoningChunk("I think "), RefusalChunk("I will not ")])
async def test_an_item_that_broke_off_is_closed_with_what_was_told_of_it(
    make_worker_fixture: MakeWorkerFixture, part: ReasoningChunk | RefusalChunk
) -> None:
    worker_fixture = make_worker_fixture(script([part, asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await worker_fixture.wait_for_stored_events(response_id, part.text)

    await worker_fixture.services.response_requests.cancellation.cancel(response_id)
    await working

    events = await worker_fixture.follow(response_id)
    [done] = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done["status"] == "incomplete"
    assert part.text in json.dumps(done)


async def test_an_end_that_no_worker_told_is_told_to_who_follows(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([TextChunk("Hello "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "Hello ")
    stored = await worker_fixture.stored(response_id)
    told = await worker_fixture.services.background.recovery.freeze_stream(stored)
    record = closing_record(stored, told.items, cancelled(None))
    await worker_fixture.store.responses.append(worker_fixture.tenant, response_id, len(stored.records), record)

    events = await worker_fixture.follow(response_id)

    assert types_of(events)[-1] == "failed"
    assert text_of(events) == "Hello "
    assert [event["type"] for event in await worker_fixture.stored_events(response_id)] == [
        event["type"] for event in events
    ]


async def test_a_step_that_is_stored_is_told_whole_behind_what_was_told_of_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([TextChunk("Hello "), asyncio.Event()]))
    response_id = await worker_fixture.create(stream=True)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_for_stored_events(response_id, "Hello ")
    twin = make_worker_fixture(script(said("Hello world")))
    twin_id = await twin.create()
    done = await twin.run(twin_id)
    assert done is not None
    await worker_fixture.store.responses.append(worker_fixture.tenant, response_id, 0, done.records[-1])

    events = await worker_fixture.follow(response_id)

    assert types_of(events)[-1] == "completed"
    assert text_of(events) == "Hello world"


async def test_who_follows_a_response_that_is_deleted_comes_to_an_end(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script([asyncio.Event()])
    worker_fixture = make_worker_fixture(model)
    response_id = await worker_fixture.create(stream=True)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()
    following = asyncio.create_task(worker_fixture.follow(response_id))
    await asyncio.sleep(0.5)

    await worker_fixture.services.stored_responses.delete(response_id)
    await working

    with pytest.raises(Exception, match="not found"):
        await following


async def test_obfuscation_pads_what_is_stored(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([TextChunk("one "), TextChunk("two"), STOP]))
    response_id = await worker_fixture.create(stream=True, stream_options={"include_obfuscation": True})

    await worker_fixture.run(response_id)

    deltas = [event for event in await worker_fixture.stored_events(response_id) if "delta" in event]
    assert all(len(event["delta"] + event["obfuscation"]) % 16 == 0 for event in deltas)
