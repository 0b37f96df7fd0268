"""A stored background response is started, whichever process dies and whichever message is lost."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from functions.worker import app
from tests.clock import CLOCK
from tests.script_model import deadline, said, script
from tests.services.background.test_worker import handle, message
from tests.services.conftest import MakeWorkerFixture
from tests.services.deaths import counting, die_at
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import RequestAttempt
from stint.domain.errors import Conflict, StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.tasks import ResponseTask
from stint.services.responses.recovery import MESSAGE_SECONDS, RETRY_SECONDS

DONE: dict[str, Any] = {"batchItemFailures": []}


@pytest.fixture
def fixture(make_worker_fixture: MakeWorkerFixture, monkeypatch: pytest.MonkeyPatch) -> WorkerFixture:
    """A process whose tasks the worker's function handles."""
    fixture = make_worker_fixture(script(*(said() for _ in range(9))))
    monkeypatch.setattr(app.composition, "make_worker", lambda _: fixture.worker)
    return fixture


async def deliver(task: ResponseTask, receives: int = 1) -> dict[str, Any]:
    answer: dict[str, Any] = await handle({"Records": [message(task.model_dump(), receives=receives)]})
    return answer


async def statuses(fixture: WorkerFixture) -> list[str]:
    """Return the stored statuses. Nothing is read again through the service, which could queue a response."""
    page = await fixture.store.responses.list(fixture.tenant)
    return [stored.status.value for stored in page.data]


async def test_an_early_task_starts_a_response_after_any_death(fixture: WorkerFixture, cloud: Cloud) -> None:
    """The task was sent before the header was stored, and the process died at any later call."""
    with counting(cloud) as seen:
        await fixture.create(stream=True)
    writes = [name for name in seen if name in ("BatchWriteItem", "PutItem")]
    assert sorted(writes) == ["BatchWriteItem", "PutItem"]
    [counted] = fixture.queue.delayed
    assert await deliver(counted) == DONE

    for operation in writes:
        fixture.queue.clear()
        await die_at(cloud, operation, 0, lambda: fixture.create(stream=True))
        [task] = fixture.queue.delayed
        assert fixture.queue.tasks == []
        assert await deliver(task) == DONE
        assert set(await statuses(fixture)) == {"completed"}


async def test_a_response_whose_process_died_before_its_message_is_started_by_the_delayed_task(
    fixture: WorkerFixture,
) -> None:
    gate = asyncio.Event()

    async def hang(task: ResponseTask) -> None:
        if task.delay_seconds:
            fixture.queue.delayed.append(task)
        else:
            gate.set()
            await asyncio.Event().wait()

    fixture.queue.send = hang  # type: ignore[method-assign, assignment]  # the process hangs at its second message
    creating = asyncio.create_task(fixture.create())
    await gate.wait()
    creating.cancel()
    assert await statuses(fixture) == ["queued"]
    [task] = fixture.queue.delayed

    assert await deliver(task) == DONE

    assert await statuses(fixture) == ["completed"]
    assert task.delay_seconds == MESSAGE_SECONDS


async def test_a_response_whose_worker_died_before_its_lease_is_started_by_the_delayed_task(
    fixture: WorkerFixture, cloud: Cloud
) -> None:
    response_id = await fixture.create()
    await die_at(cloud, "Query", 0, lambda: fixture.run(response_id))
    await die_at(cloud, "UpdateItem", 0, lambda: fixture.run(response_id))

    await deliver(fixture.queue.delayed[0])

    assert await statuses(fixture) == ["completed"]


async def test_the_delayed_task_of_a_started_response_does_nothing(fixture: WorkerFixture, cloud: Cloud) -> None:
    response_id = await fixture.create()
    await fixture.run(response_id)
    ends = len(fixture.queue.ends)
    cloud.forget()

    assert await deliver(fixture.queue.delayed[0]) == DONE

    assert len(fixture.queue.ends) == ends
    assert cloud.calls == {"Query": 1}


async def test_the_delayed_task_of_a_response_that_was_never_stored_is_dropped(
    fixture: WorkerFixture, cloud: Cloud
) -> None:
    with cloud.proxy.failing("BatchWriteItem"), pytest.raises(StoreUnavailable):
        await fixture.create()

    assert await deliver(fixture.queue.delayed[0]) == DONE

    assert fixture.queue.ends == []


async def test_a_delayed_task_that_comes_again_continues_the_response_that_it_started(
    fixture: WorkerFixture, cloud: Cloud
) -> None:
    response_id = await fixture.create()
    await die_at(cloud, "PutItem", 0, lambda: fixture.run(response_id))
    CLOCK.move(fixture.lease + 1)

    first = await deliver(fixture.queue.delayed[0])
    again = await deliver(fixture.queue.delayed[0], receives=2)

    assert (first, again) == (DONE, DONE)
    assert await statuses(fixture) == ["completed"]


async def test_a_response_is_accepted_although_the_queue_refuses_its_message(fixture: WorkerFixture) -> None:
    send = fixture.queue.send

    async def refuse(task: ResponseTask) -> None:
        fixture.queue.refuses = not task.delay_seconds
        await send(task)

    fixture.queue.send = refuse  # type: ignore[method-assign, assignment]  # only the delayed task is accepted

    await fixture.create()
    fixture.queue.refuses = False
    await deliver(fixture.queue.delayed[0])

    assert await statuses(fixture) == ["completed"]


async def test_a_reader_queues_a_waiting_response_again_at_growing_intervals(fixture: WorkerFixture) -> None:
    response_id = await fixture.create()
    fixture.queue.clear()
    queued_at = []

    for second in range(0, 16 * MESSAGE_SECONDS, MESSAGE_SECONDS // 2):
        await fixture.get(response_id)
        if fixture.queue.tasks:
            queued_at.append(second)
        fixture.queue.clear()
        CLOCK.move(MESSAGE_SECONDS / 2)

    assert len(queued_at) == 4
    assert all(later >= 2 * earlier for earlier, later in pairwise(queued_at))


async def retry(fixture: WorkerFixture, key_id: str) -> str | None:
    """Send the request again with the same idempotency key, while the process of the first one may still run."""
    attempt = RequestAttempt(object_id=key_id, repeated=True, follows=True)
    return await fixture.services.response_requests.make_retries().find_keyed(attempt, deadline(30))


async def create_and_die(fixture: WorkerFixture, key_id: str, **fields: Any) -> str:
    """Create a response with an idempotency key in a process that dies before its message, and return its id."""
    response_id = await fixture.create(attempt=RequestAttempt(object_id=key_id), **fields)
    fixture.queue.clear()
    return response_id


async def test_a_retry_queues_a_response_that_died_before_its_message(
    fixture: WorkerFixture,
) -> None:
    """The retry has the same idempotency key."""
    conversation, key_id = await fixture.conversation(), new_id()
    response_id = await create_and_die(fixture, key_id, conversation=conversation)
    with pytest.raises(Conflict):
        await fixture.create(conversation=conversation)
    fixture.queue.clear()

    assert await retry(fixture, key_id) == response_id

    [task] = fixture.queue.tasks
    assert await deliver(task) == DONE
    assert await statuses(fixture) == ["completed"]
    await fixture.create(conversation=conversation)


async def test_retries_send_one_message_in_ten_seconds(fixture: WorkerFixture) -> None:
    response_id = await create_and_die(fixture, key_id := new_id())

    sent = []
    for _ in range(4):
        await asyncio.gather(*(retry(fixture, key_id) for _ in range(5)))
        await fixture.get(response_id)
        sent.append(len(fixture.queue.tasks))
        CLOCK.move(RETRY_SECONDS / 2)

    assert sent == [1, 1, 2, 2]
    assert {(task.response_id, task.unstarted_only) for task in fixture.queue.tasks} == {(response_id, True)}


async def test_a_retry_of_a_response_that_a_worker_has_started_sends_no_message(fixture: WorkerFixture) -> None:
    response_id = await create_and_die(fixture, key_id := new_id())
    await fixture.run(response_id)
    CLOCK.move(RETRY_SECONDS)

    assert await retry(fixture, key_id) == response_id

    assert fixture.queue.tasks == []


async def test_a_reader_waits_longer_than_a_retry(fixture: WorkerFixture) -> None:
    response_id = await create_and_die(fixture, new_id())
    CLOCK.move(MESSAGE_SECONDS - 1)

    await fixture.get(response_id)

    assert fixture.queue.tasks == []
