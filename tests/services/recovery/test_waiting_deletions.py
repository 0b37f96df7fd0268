"""Deletions of sessions and conversations delete the messages that wait for them, and those that no longer do."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any
from uuid import UUID

import pytest
from tests.clock import CLOCK
from tests.script_model import said, script
from tests.services.deaths import die_at
from tests.services.recovery.test_waiting_runs import Waiting, WaitingInConversation
from tests.services.worker_fixture import FakeQueue, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, NotFound
from stint.domain.expiry import Expiry
from stint.domain.ids import name_of, new_id
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import Response
from stint.domain.run_outcome import ErrorInfo
from stint.domain.tasks import AnyTask, WaitingTask
from stint.domain.waiting_messages import MessageState
from stint.store.waiting_line import ALIVE_SECONDS, WaitingLine

LONG = Random(7).randbytes(320_000).hex()
"""A text that no record has room for, even compressed."""


async def opened(cloud: Cloud, tenant: str) -> WaitingInConversation:
    return await WaitingInConversation(WorkerFixture(cloud, tenant, script(said(), said()))).open()


def request(waiting: WaitingInConversation, text: str) -> CreateResponse:
    fields = {"model": "test/m", "input": text, "conversation": waiting.conversation_id, "when_busy": "enqueue"}
    return CreateResponse.model_validate(fields)


async def accept(waiting: WaitingInConversation, text: str) -> str:
    return await waiting.admission.accept(request(waiting, text))


async def delete_conversation(waiting: WaitingInConversation) -> None:
    store, ids = waiting.fixture.store, (waiting.fixture.tenant, waiting.conversation_id)
    await store.conversations.mark_deleted(*ids)
    assert await store.conversations.delete(*ids)


def left(cloud: Cloud, tenant: str) -> list[str]:
    """Return the kinds of the tenant's records, and its blobs."""
    return [item["pk"]["S"].split("#")[1].split(":")[0] for item in cloud.items(tenant)] + cloud.blobs(tenant)


async def cancel(line: WaitingLine, message: str) -> None:
    assert await line.cancel(message, None)


async def fail(line: WaitingLine, message: str) -> None:
    await line.fail(message, ErrorInfo.of(NotFound("Model", "m")))


async def merge(line: WaitingLine, message: str) -> None:
    assert await line.claim_merge(message, "another")
    await line.remove_place(message)


async def start(line: WaitingLine, message: str) -> None:
    assert await line.claim_run(message, "another")
    await line.finish(message, "another")


async def wait(_: WaitingLine, __: str) -> None:
    """Leave the message in line."""


@pytest.mark.parametrize("act", [wait, cancel, fail, merge, start])
@pytest.mark.parametrize("text", ["plums", LONG], ids=["short", "long"])
async def test_a_deleted_conversation_leaves_no_message(
    own_cloud: Cloud, tenant: str, act: Callable[[WaitingLine, str], Awaitable[None]], text: str
) -> None:
    waiting = await opened(own_cloud, tenant)
    await act(waiting.admission.line, await accept(waiting, text))

    await delete_conversation(waiting)

    assert left(own_cloud, tenant) == []


@pytest.mark.parametrize("operation", ["PutItem", "UpdateItem", "DeleteItem"])
async def test_a_cancellation_that_dies_leaves_nothing_after_the_deletion(
    own_cloud: Cloud, tenant: str, operation: str
) -> None:
    for act in (cancel, merge):
        waiting = await opened(own_cloud, tenant)
        message = await accept(waiting, "plums")
        await die_at(own_cloud, operation, 0, partial(act, waiting.admission.line, message))
        await delete_conversation(waiting)

    assert left(own_cloud, tenant) == []


class DeletingQueue(FakeQueue):
    """A queue that calls `delete` once it has got the task of a message, which is stored after that."""

    delete: Callable[[], Awaitable[object]]

    async def send(self, task: AnyTask) -> None:
        await super().send(task)
        if isinstance(task, WaitingTask):
            await self.delete()


async def test_a_conversation_that_is_deleted_before_its_message_is_stored_leaves_nothing(
    own_cloud: Cloud, tenant: str
) -> None:
    waiting = await opened(own_cloud, tenant)
    queue = DeletingQueue()
    other = WorkerFixture(own_cloud, tenant, script(), queue=queue)
    queue.delete = partial(delete_conversation, waiting)
    admission = other.services.response_requests.make_admission(waiting.conversation_id)

    with pytest.raises(NotFound):
        await admission.accept(request(waiting, LONG))

    assert left(own_cloud, tenant) == []


async def test_a_session_that_is_deleted_before_its_message_is_stored_leaves_nothing(
    own_cloud: Cloud, tenant: str
) -> None:
    queue = DeletingQueue()
    waiting = await Waiting(WorkerFixture(own_cloud, tenant, script(), queue=queue)).open()
    ids = tenant, waiting.agent_id, waiting.session_id

    async def delete() -> None:
        await own_cloud.store.sessions.mark_deleted(*ids)
        assert await own_cloud.store.deletion.delete_session(*ids, float("inf"))

    queue.delete = delete
    with pytest.raises(NotFound):
        await waiting.accept(LONG)

    assert set(left(own_cloud, tenant)) == {"agent"}


async def test_a_response_that_waits_can_be_deleted(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    delete = waiting.fixture.services.response_requests.waiting.delete
    assert (await delete(waiting.response_id)).id == waiting.response_id

    with pytest.raises(NotFound):
        await waiting.read()
    with pytest.raises(NotFound):
        await delete(waiting.response_id)
    CLOCK.move(ALIVE_SECONDS + 1)
    await waiting.work()
    assert (await waiting.admission.line.read(), waiting.fixture.queue.waiting) == ([], [])
    assert (await waiting.fixture.services.conversations.list_items(waiting.conversation_id, None, 1, "asc")).data == []


async def test_a_response_that_is_run_while_it_is_deleted_is_deleted(
    own_cloud: Cloud, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = await opened(own_cloud, tenant)
    cancel = WaitingLine.cancel

    async def run_before(line: WaitingLine, *arguments: Any) -> bool:
        monkeypatch.undo()
        CLOCK.move(ALIVE_SECONDS + 1)
        await waiting.work()
        return await cancel(line, *arguments)

    monkeypatch.setattr(WaitingLine, "cancel", run_before)
    deleted = await waiting.fixture.services.response_requests.waiting.delete(waiting.response_id)

    assert deleted.id == waiting.response_id
    with pytest.raises(NotFound):
        await waiting.read()


async def test_a_response_that_was_started_with_another_id_is_deleted(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    message = waiting.response_id
    assert await waiting.admission.line.claim_run(str(UUID(message[5:])), new_id())  # by a process that dies
    CLOCK.move(ALIVE_SECONDS + 1)
    await waiting.work()
    run = await waiting.read()
    assert (run.id != message, run.status) == (True, "completed")

    await waiting.fixture.services.response_requests.waiting.delete(message)

    for response_id in (message, run.id):
        with pytest.raises(NotFound):
            await waiting.fixture.services.response_requests.get(response_id, ())


async def test_a_response_that_another_one_has_taken_is_not_deleted_by_its_own_id(
    own_cloud: Cloud, tenant: str
) -> None:
    waiting = await opened(own_cloud, tenant)
    message, run = str(UUID(waiting.response_id[5:])), await waiting.fixture.finished()
    assert await waiting.admission.line.claim_merge(message, run.id[5:])

    with pytest.raises(Conflict) as refused:
        await waiting.fixture.services.response_requests.waiting.delete_run(
            waiting.response_id, await found(waiting, message)
        )

    assert (refused.value.code, run.id in refused.value.message) == ("response_merged", True)


async def found(waiting: WaitingInConversation, message: str) -> MessageState:
    state = await waiting.admission.line.get(message)
    assert state is not None
    return state


async def test_the_lifetime_of_a_response_counts_from_its_acceptance(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    body = request(waiting, "two").model_copy(update={"expires_after": Expiry(seconds=7_200)})
    with CLOCK.stop():
        message, end = await waiting.admission.accept(body), int(time.time() + 7_200)

    CLOCK.move(1_800)
    queued = await waiting.fixture.services.response_requests.get(name_of("resp", message), ())
    await waiting.work()
    await waiting.work()
    started = await waiting.fixture.services.response_requests.get(name_of("resp", message), ())

    assert (queued.status, started.status) == ("queued", "completed")
    assert (queued.expires_at, started.expires_at) == (end, end)


async def test_a_response_whose_lifetime_ends_while_it_waits_is_dropped(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    body = request(waiting, "two").model_copy(update={"expires_after": Expiry(seconds=3_600)})
    message = await waiting.admission.accept(body)

    CLOCK.move(3_601)

    assert message not in {place.message_id for place in await waiting.admission.line.read()}
    with pytest.raises(NotFound):
        await waiting.fixture.services.response_requests.get(name_of("resp", message), ())


async def claim_by_merge(line: WaitingLine, message: str) -> None:
    assert await line.claim_merge(message, new_id())


async def claim_by_run(line: WaitingLine, message: str) -> None:
    assert await line.claim_run(message, new_id())


@pytest.mark.parametrize("claim", [claim_by_merge, claim_by_run])
async def test_a_message_that_a_dead_process_has_claimed_can_be_read_cancelled_and_deleted(
    own_cloud: Cloud, tenant: str, claim: Callable[[WaitingLine, str], Awaitable[None]]
) -> None:
    waiting = await opened(own_cloud, tenant)
    services = waiting.fixture.services
    await claim(waiting.admission.line, str(UUID(waiting.response_id[5:])))

    statuses = [(await waiting.read()).status, (await services.response_requests.cancel(waiting.response_id)).status]
    statuses.append((await waiting.read()).status)
    deleted = await services.response_requests.waiting.delete(waiting.response_id)

    assert (statuses, deleted.id) == (["queued", "cancelled", "cancelled"], waiting.response_id)
    with pytest.raises(NotFound):
        await waiting.read()


async def test_a_response_that_is_started_while_it_is_read_is_found(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    CLOCK.move(ALIVE_SECONDS + 1)
    services, cancel = waiting.fixture.services, waiting.fixture.services.response_requests.cancellation.cancel

    async def start_late(response_id: str) -> Response:
        try:
            return await cancel(response_id)
        except NotFound:
            await waiting.work()
            raise

    response = await services.response_requests.use_found(waiting.response_id, start_late)

    assert (response.id, response.status) == (waiting.response_id, "completed")


async def test_a_message_that_is_deleted_while_it_is_read_is_none(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    message = await accept(waiting, LONG)
    for key in own_cloud.blobs(tenant):
        own_cloud.s3.delete_object(Bucket=own_cloud.bucket, Key=key)

    assert await waiting.admission.line.get(message) is None


async def test_a_response_that_is_started_while_it_is_deleted_is_deleted(own_cloud: Cloud, tenant: str) -> None:
    waiting = await opened(own_cloud, tenant)
    CLOCK.move(ALIVE_SECONDS + 1)
    await waiting.work()

    await waiting.fixture.services.response_requests.waiting.delete(waiting.response_id)

    with pytest.raises(NotFound):
        await waiting.read()
