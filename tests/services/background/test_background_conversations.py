"""A response in the background holds its conversation from its acceptance to its end, and no longer."""

import asyncio
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import STOP, Part, called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import MCP_TOOL, WorkerFixture

from stint.domain.errors import Conflict, ModelError, StoreUnavailable
from stint.domain.inference import TextChunk
from stint.domain.openai.items import Message
from stint.services.responses.recovery import MESSAGE_SECONDS, QUEUE_SECONDS

HOUR = 3_600


async def is_locked(worker_fixture: WorkerFixture, conversation: str) -> bool:
    """Ask for the conversation in the foreground and in the background, which is to make no difference."""
    refusals = []
    try:
        run = await Responder(worker_fixture).start("locked?", conversation=conversation)
        await run.run.close_inference()
        await run.log.release()
    except Conflict as conflict:
        refusals.append(conflict.code)
    try:
        response_id = await worker_fixture.create("locked?", conversation=conversation)
        await worker_fixture.services.response_requests.make_cancellation().cancel(response_id)
        worker_fixture.queue.tasks.pop()
    except Conflict as conflict:
        refusals.append(conflict.code)
    assert refusals in ([], ["conversation_locked"] * 2)
    return bool(refusals)


async def told_in(worker_fixture: WorkerFixture, conversation: str) -> list[str]:
    """The texts of a conversation, in their order."""
    page = await worker_fixture.services.conversations.list_items(conversation, None, 20, "asc")
    messages = [item for item in page.data if isinstance(item, Message)]
    return ["".join(getattr(part, "text", "") for part in message.content) for message in messages]


async def queued(worker_fixture: WorkerFixture, text: str = "first", **fields: Any) -> tuple[str, str]:
    """Make a conversation, and queue a response in it."""
    conversation = await worker_fixture.conversation()
    return conversation, await worker_fixture.create(text, conversation=conversation, **fields)


async def test_a_response_that_waits_holds_its_conversation_however_long_that_takes(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script(said("one"), said("two"))
    worker_fixture = make_worker_fixture(model)
    conversation, first = await queued(worker_fixture)

    locked = [await is_locked(worker_fixture, conversation)]
    CLOCK.move(HOUR)
    locked.append(await is_locked(worker_fixture, conversation))
    await worker_fixture.run(first)
    second = await worker_fixture.create("second", conversation=conversation)
    await worker_fixture.run(second)

    assert locked == [True, True]
    assert [words_of(message) for message in model.requests[1].messages] == ["first", "one", "second"]
    assert await told_in(worker_fixture, conversation) == ["first", "one", "second", "two"]


async def test_of_many_requests_at_once_one_is_accepted(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script(said()))
    conversation = await worker_fixture.conversation()

    outcomes = await asyncio.gather(
        *(worker_fixture.create(conversation=conversation) for _ in range(8)), return_exceptions=True
    )

    [accepted] = [each for each in outcomes if isinstance(each, str)]
    assert all(isinstance(each, Conflict) for each in outcomes if each != accepted)
    assert [task.response_id for task in worker_fixture.queue.tasks] == [accepted]


async def test_a_response_that_runs_holds_its_conversation_until_its_items_are_in_it(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    gate = asyncio.Event()
    model = script([gate, *said("Hi")], [])
    worker_fixture = make_worker_fixture(model)
    conversation, response_id = await queued(worker_fixture)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()

    locked = await is_locked(worker_fixture, conversation)
    gate.set()
    await working

    assert locked
    assert not await is_locked(worker_fixture, conversation)
    assert await told_in(worker_fixture, conversation) == ["first", "Hi"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_response_that_is_cancelled_in_the_queue_lets_its_conversation_go(
    make_worker_fixture: MakeWorkerFixture, streamed: bool
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation, response_id = await queued(worker_fixture, stream=streamed)

    await worker_fixture.services.response_requests.make_cancellation().cancel(response_id)

    assert not await is_locked(worker_fixture, conversation)
    assert await told_in(worker_fixture, conversation) == []


async def test_a_response_that_is_deleted_in_the_queue_lets_its_conversation_go(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation, response_id = await queued(worker_fixture)

    await worker_fixture.services.stored_responses.delete(response_id)

    assert not await is_locked(worker_fixture, conversation)


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_a_stopped_response_releases_its_conversation_with_its_worker(
    make_worker_fixture: MakeWorkerFixture, end: str
) -> None:
    """It is stopped while it runs."""
    model = script([TextChunk("Half"), asyncio.Event()], [])
    worker_fixture = make_worker_fixture(model)
    conversation, response_id = await queued(worker_fixture)
    working = asyncio.create_task(worker_fixture.run(response_id))
    await model.opened.wait()

    if end == "cancel":
        await worker_fixture.services.response_requests.make_cancellation().cancel(response_id)
    else:
        await worker_fixture.services.stored_responses.delete(response_id)
    await working

    assert not await is_locked(worker_fixture, conversation)
    assert await told_in(worker_fixture, conversation) == (["first"] if end == "cancel" else [])


@pytest.mark.parametrize("at_the_model", [True, False])
async def test_a_response_that_fails_lets_its_conversation_go(
    make_worker_fixture: MakeWorkerFixture, monkeypatch: pytest.MonkeyPatch, at_the_model: bool
) -> None:
    answers: list[list[Part]] = [[ModelError("Busy.")], []]
    worker_fixture = make_worker_fixture(script(*answers[not at_the_model :]))
    conversation, response_id = await queued(worker_fixture, tools=[MCP_TOOL])
    if not at_the_model:
        planner = type(worker_fixture.services.responses.planner)

        async def refuse(*_: Any) -> None:
            raise ModelError("The tools cannot be listed.")

        monkeypatch.setattr(planner, "plan", refuse)

    await worker_fixture.run(response_id)
    monkeypatch.undo()

    assert await worker_fixture.status(response_id) == "failed"
    assert not await is_locked(worker_fixture, conversation)


async def test_only_stops_are_read_to_take_a_conversation_whose_response_has_failed(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([ModelError("Busy.")]))
    conversation, response_id = await queued(worker_fixture)
    await worker_fixture.run(response_id)
    worker_fixture.cloud.forget()

    await worker_fixture.create(conversation=conversation)

    assert worker_fixture.cloud.calls == {"UpdateItem": 2, "Query": 1, "BatchWriteItem": 1, "GetItem": 1}


async def test_a_response_in_the_background_takes_its_conversation_with_one_write(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said()))
    await worker_fixture.create()
    conversation = await worker_fixture.conversation()
    worker_fixture.cloud.forget()

    response_id = await worker_fixture.create(conversation=conversation)
    created = dict(worker_fixture.cloud.calls)
    worker_fixture.cloud.forget()
    await worker_fixture.run(response_id)

    assert created == {"UpdateItem": 2, "Query": 1, "BatchWriteItem": 1, "GetItem": 1}
    # Its own lease, the conversation's lock and release; its items, and the conversation asked for after them.
    writes = ("UpdateItem", "BatchWriteItem", "PutItem")
    assert [worker_fixture.cloud.calls[name] for name in writes] == [3, 1, 1]


@pytest.mark.parametrize("lost", [False, True])
async def test_a_response_whose_header_is_not_stored_lets_its_conversation_go(
    make_worker_fixture: MakeWorkerFixture, lost: bool
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation = await worker_fixture.conversation()

    with worker_fixture.cloud.proxy.failing("BatchWriteItem", lost=lost), pytest.raises(StoreUnavailable):
        await worker_fixture.create(conversation=conversation)

    listed = await worker_fixture.services.stored_responses.list(None, 10, None, "desc")
    assert listed.data == []
    assert not await is_locked(worker_fixture, conversation)


async def test_a_response_that_the_queue_does_not_take_lets_its_conversation_go(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation = await worker_fixture.conversation()
    worker_fixture.queue.refuses = True

    with pytest.raises(StoreUnavailable):
        await worker_fixture.create(conversation=conversation)
    worker_fixture.queue.refuses = False

    assert not await is_locked(worker_fixture, conversation)


async def test_a_process_that_dies_before_the_header_is_stored_locks_nothing_for_good(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation = await worker_fixture.conversation()
    await worker_fixture.store.conversation_leases.acquire(
        worker_fixture.tenant, conversation, f"resp_{'0' * 32}", worker_fixture.lease
    )

    locked = await is_locked(worker_fixture, conversation)
    CLOCK.move(worker_fixture.lease)

    assert locked
    assert not await is_locked(worker_fixture, conversation)


async def test_a_lock_that_could_not_be_left_runs_out_and_is_kept_by_the_record(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said("Hi")))
    conversation = await worker_fixture.conversation()
    with worker_fixture.cloud.proxy.failing("UpdateItem", "lock_id = :held"):
        response_id = await worker_fixture.create("first", conversation=conversation)

    CLOCK.move(worker_fixture.lease)
    locked = await is_locked(worker_fixture, conversation)
    await worker_fixture.run(response_id)

    assert locked
    assert await told_in(worker_fixture, conversation) == ["first", "Hi"]


async def test_a_response_without_its_worker_keeps_its_conversation(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    """Its worker died; whoever wants the conversation queues it again."""
    worker_fixture = make_worker_fixture(script([TextChunk("half"), asyncio.Event()]))
    conversation, response_id = await queued(worker_fixture)
    async with worker_fixture.dying(response_id):
        await worker_fixture.wait_until_leased(response_id)
    await worker_fixture.expire_lease(response_id)

    locked = await is_locked(worker_fixture, conversation)
    tasks = [task.response_id for task in worker_fixture.queue.tasks]
    successor = worker_fixture.other_process(script(said("whole"), []))
    await successor.run(response_id)

    assert locked
    assert tasks == [response_id] * 2
    assert not await is_locked(successor, conversation)
    assert await told_in(worker_fixture, conversation) == ["first", "whole"]


async def test_a_response_that_another_attempt_follows_keeps_its_conversation(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    fault: list[Part] = [ValueError("a fault")]
    worker_fixture = make_worker_fixture(script(fault, fault, fault, []))
    conversation, response_id = await queued(worker_fixture)

    locked = []
    for _ in range(3):
        with pytest.raises(ValueError, match="a fault"):
            await worker_fixture.run(response_id)
        locked.append(await is_locked(worker_fixture, conversation))

    assert locked == [True, True, False]
    assert await worker_fixture.status(response_id) == "failed"


async def test_workers_that_die_three_times_are_noticed_by_who_wants_the_conversation(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation, response_id = await queued(worker_fixture)
    for _ in range(3):
        worker = worker_fixture.other_process(script([asyncio.Event()]))
        async with worker.dying(response_id):
            await worker_fixture.wait_until_leased(response_id)
        await worker_fixture.expire_lease(response_id)

    assert not await is_locked(worker_fixture, conversation)
    assert await worker_fixture.status(response_id) == "failed"


async def test_the_last_delivery_of_a_message_lets_the_conversation_go(make_worker_fixture: MakeWorkerFixture) -> None:
    worker_fixture = make_worker_fixture(script([]))
    conversation, response_id = await queued(worker_fixture)

    with worker_fixture.cloud.proxy.failing("UpdateItem"), pytest.raises(StoreUnavailable):
        await worker_fixture.run(response_id, last=True)

    assert not await is_locked(worker_fixture, conversation)


@pytest.mark.parametrize("reader", ["who wants the conversation", "who reads the response"])
async def test_a_response_whose_message_was_lost_is_queued_again_and_again(
    make_worker_fixture: MakeWorkerFixture, reader: str
) -> None:
    worker_fixture = make_worker_fixture(script(said("Hi"), []))
    conversation, response_id = await queued(worker_fixture)
    worker_fixture.queue.tasks.clear()

    async def look() -> int:
        for _ in range(2):
            if reader == "who reads the response":
                assert await worker_fixture.status(response_id) == "queued"
            else:
                assert await is_locked(worker_fixture, conversation)
        return len(worker_fixture.queue.tasks)

    soon = await look()
    CLOCK.move(MESSAGE_SECONDS)
    later = await look()
    CLOCK.move(MESSAGE_SECONDS + 1)
    last = await look()
    await worker_fixture.run(worker_fixture.queue.tasks.pop().response_id)

    assert (soon, later, last) == (0, 1, 2)
    assert await worker_fixture.status(response_id) == "completed"
    assert not await is_locked(worker_fixture, conversation)


async def test_a_response_that_no_worker_takes_up_within_a_day_has_failed(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    model = script([])
    worker_fixture = make_worker_fixture(model)
    conversation, response_id = await queued(worker_fixture, stream=True)

    CLOCK.move(QUEUE_SECONDS)

    assert not await is_locked(worker_fixture, conversation)
    response = await worker_fixture.get(response_id)
    assert response.error is not None
    assert (response.status, response.error.code) == ("failed", "queue_timeout")
    assert (await worker_fixture.follow(response_id))[-1]["response"]["status"] == "failed"
    stored = await worker_fixture.run(response_id)
    assert stored is not None
    assert stored.status == "failed"


async def test_a_response_waits_for_a_conversation_that_another_one_has_after_all(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    worker_fixture = make_worker_fixture(script(said("first"), said("second")))
    (one, patient), (other, hasty) = [await queued(worker_fixture) for _ in range(2)]
    lock = await worker_fixture.store.conversation_leases.acquire(worker_fixture.tenant, one, "resp_other", 30)

    working = asyncio.create_task(worker_fixture.run(patient))
    await worker_fixture.wait_until_leased(patient)
    await lock.release()
    await working
    await worker_fixture.store.conversation_leases.acquire(worker_fixture.tenant, other, "resp_other", 30)
    await worker_fixture.run(hasty, seconds=0.5)

    assert await worker_fixture.status(patient) == "completed"
    failed = await worker_fixture.get(hasty)
    assert failed.error is not None
    assert (failed.status, failed.error.code) == ("failed", "conversation_locked")


async def test_the_next_response_sees_all_that_the_one_before_it_said(make_worker_fixture: MakeWorkerFixture) -> None:
    model = script(called("buy"), [TextChunk("one"), STOP], said("two"))
    worker_fixture = make_worker_fixture(model)
    conversation, response_id = await queued(worker_fixture, tools=[MCP_TOOL])
    await worker_fixture.run(response_id)

    await Responder(worker_fixture).respond("second", conversation=conversation)

    words = [words_of(message) for message in model.requests[2].messages]
    assert words == ["first", "", "buy is done", "one", "second"]
