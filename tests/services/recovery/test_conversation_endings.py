"""A conversation has the items of each response that is completed, and none of one that failed."""

import asyncio
import threading
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.script_model import Script, called, said, script, words_of
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at, pending_timers
from tests.services.responses.responder import Answered, Responder
from tests.services.worker_fixture import MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.openai.stored_responses import ResponseStatus

LEASE = 30.0
WRITES = ("BatchWriteItem", "PutItem", "GetItem", "UpdateItem")


class Talk:
    """A conversation with a response in it, and another one after it, each with two model calls."""

    def __init__(self, make_worker_fixture: MakeWorkerFixture) -> None:
        self.model: Script = script(called("buy"), said("the answer"))
        self.next_model: Script = script(called("buy"), said("the end"))
        self.fixture = make_worker_fixture(self.model, lease=LEASE)
        self.responder = Responder(self.fixture)
        self.next = Responder(self.fixture.other_process(self.next_model))
        self.conversation = ""

    async def begin(self) -> None:
        self.conversation = await self.responder.conversation()

    async def respond(self) -> Answered:
        return await self.responder.respond("the question", **self.fields)

    async def follow(self) -> list[str]:
        """Run another response, and return the texts that its model got before the input."""
        await self.next.respond("next", **self.fields)
        messages = [words_of(message) for message in self.next_model.requests[0].messages]
        return messages[: messages.index("next")]

    @property
    def fields(self) -> dict[str, Any]:
        return {"conversation": self.conversation, "tools": [MCP_TOOL], "seconds": 900}

    async def items(self) -> list[str]:
        page = await self.fixture.services.conversations.list_items(self.conversation, None, 20, "asc")
        return [item.type for item in page.data]


def stop_renewals() -> None:
    """Stop the renewal of all leases, as in a process that sleeps."""
    for task in asyncio.all_tasks():
        if "keep_renewing" in str(task.get_coro()):
            task.cancel()
    for timer in pending_timers():
        if "begin_renewing" in str(timer):
            timer.cancel()


async def calls_after_the_header(make_worker_fixture: MakeWorkerFixture, cloud: Cloud) -> list[str]:
    """Count the calls of a response that has begun."""
    talk = Talk(make_worker_fixture)
    await talk.begin()
    run = await talk.responder.start("the question", **talk.fields)
    with counting(cloud) as seen:
        await talk.responder.play(run)
    return seen


@pytest.mark.parametrize("operation", WRITES)
async def test_a_death_at_any_call_leaves_a_conversation_that_agrees_with_its_response(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, operation: str
) -> None:
    seen = await calls_after_the_header(make_worker_fixture, cloud)
    assert seen.count(operation) > 0

    for number in range(seen.count(operation)):
        talk = Talk(make_worker_fixture)
        await talk.begin()
        run = await talk.responder.start("the question", **talk.fields)
        await die_at(cloud, operation, number, lambda own=talk, started=run: own.responder.play(started))  # type: ignore[misc]
        CLOCK.move(LEASE + 1)

        completed = await talk.fixture.status(run.response_id) == "completed"
        assert len(await talk.items()) == (4 if completed else 0)
        told = await talk.follow()
        assert ("the question" in told, "the answer" in told) == (completed, completed)


@pytest.mark.parametrize("performed", [False, True])
@pytest.mark.parametrize("operation", WRITES)
async def test_a_fault_at_any_call_leaves_a_conversation_that_agrees_with_its_response(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, operation: str, performed: bool
) -> None:
    talk = Talk(make_worker_fixture)
    await talk.begin()
    run = await talk.responder.start("the question", **talk.fields)

    with cloud.proxy.fail(operation, "InternalServerError", status=500, performed=performed):
        answered = await talk.responder.play(run)
    shown = await talk.fixture.status(run.response_id)
    CLOCK.move(LEASE + 1)

    told = await talk.follow()
    stored = await talk.fixture.status(run.response_id)
    completed = stored == "completed"
    assert shown in (stored, "in_progress")
    assert not completed or answered.response.status is ResponseStatus.completed
    assert ("the question" in told, "the answer" in told) == (completed, completed)


async def respond_past_the_lease(talk: Talk, cloud: Cloud, write: str, part: str) -> tuple[list[str], Answered]:
    """Respond, with a write of `part` that lasts longer than the lease. Return what the next response read, too."""
    asleep, awake = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def sleep(operation: str, body: str) -> None:
        if operation == write and part in body and not asleep.is_set():
            loop.call_soon_threadsafe(asleep.set)
            awake.wait(20)

    with cloud.proxy.watching(sleep):
        responding = asyncio.create_task(talk.respond())
        await asyncio.wait_for(asleep.wait(), 20)
        stop_renewals()
        CLOCK.move(LEASE + 1)
        told = await talk.follow()
        awake.set()
        answered = await responding
    return told, answered


async def test_a_writer_that_slept_past_its_lease_before_its_ending_adds_nothing(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud
) -> None:
    talk = Talk(make_worker_fixture)
    await talk.begin()
    told, answered = await respond_past_the_lease(talk, cloud, "PutItem", "ended_as")

    assert "the question" not in told
    assert answered.response.status is ResponseStatus.failed
    assert len(await talk.items()) == 4  # those of the next response


async def test_a_writer_that_slept_past_its_lease_after_its_ending_adds_its_items_once(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud
) -> None:
    talk = Talk(make_worker_fixture)
    await talk.begin()
    told, answered = await respond_past_the_lease(talk, cloud, "BatchWriteItem", "item:")

    assert ("the question" in told, "the answer" in told) == (True, True)
    assert answered.response.status is ResponseStatus.completed
    assert len(await talk.items()) == 8


@pytest.mark.parametrize("reader", ["list", "item"])
async def test_a_reader_of_items_adds_those_that_a_completed_response_left_out(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud, reader: str
) -> None:
    talk = Talk(make_worker_fixture)
    await talk.begin()
    run = await talk.responder.start("the question", **talk.fields)
    with cloud.proxy.failing("BatchWriteItem"):
        answered = await talk.responder.play(run)
    assert answered.response.status is ResponseStatus.completed
    conversations = talk.fixture.services.conversations

    if reader == "list":
        assert len(await talk.items()) == 4
    last = answered.response.output[-1]
    assert await conversations.get_item(talk.conversation, last.id) == last

    cloud.forget()
    assert len(await talk.items()) == 4
    assert cloud.calls == {"BatchGetItem": 1, "Query": 1}  # the lapsed lease is gone


async def test_the_items_of_a_worker_that_died_after_the_ending_are_added(
    make_worker_fixture: MakeWorkerFixture, cloud: Cloud
) -> None:
    talk = Talk(make_worker_fixture)
    await talk.begin()
    fields = {name: value for name, value in talk.fields.items() if name != "seconds"}
    response_id = await talk.fixture.create("the question", **fields)

    await die_at(cloud, "BatchWriteItem", 0, lambda: talk.fixture.run(response_id))
    CLOCK.move(LEASE + 1)

    assert await talk.fixture.status(response_id) == "completed"
    assert "the answer" in await talk.follow()
