"""Deletions of sessions and conversations delete the messages that wait for them, and those that no longer do."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from tests.script_model import said, script
from tests.services.deaths import die_at
from tests.services.test_waiting_runs import Waiting, WaitingInConversation
from tests.services.worker_fixture import FakeQueue, WorkerFixture
from tests.store.conftest import Cloud

from stint.domain.errors import NotFound
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.run_outcome import ErrorInfo
from stint.domain.tasks import AnyTask, WaitingTask
from stint.store.waiting_line import WaitingLine

LONG = "plums " * 60_000
"""A text that no record has room for."""


async def opened(cloud: Cloud, tenant: str) -> WaitingInConversation:
    return await WaitingInConversation(WorkerFixture(cloud, tenant, script(said()))).open()


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
    await line.leave(message)


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
    other = WorkerFixture(own_cloud, tenant, script(), desk=queue)
    queue.delete = partial(delete_conversation, waiting)
    admission = other.services.make_response_admission(waiting.conversation_id)

    with pytest.raises(NotFound):
        await admission.accept(request(waiting, LONG))

    assert left(own_cloud, tenant) == []


async def test_a_session_that_is_deleted_before_its_message_is_stored_leaves_nothing(
    own_cloud: Cloud, tenant: str
) -> None:
    queue = DeletingQueue()
    waiting = await Waiting(WorkerFixture(own_cloud, tenant, script(), desk=queue)).open()
    ids = tenant, waiting.agent_id, waiting.session_id

    async def delete() -> None:
        await own_cloud.store.sessions.mark_deleted(*ids)
        assert await own_cloud.store.deletion.delete_session(*ids, float("inf"))

    queue.delete = delete
    with pytest.raises(NotFound):
        await waiting.accept(LONG)

    assert set(left(own_cloud, tenant)) == {"agent"}
