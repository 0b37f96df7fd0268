"""Ingestions whose worker died, or whose task was lost, and that a poll sends again."""

import pytest
from tests.clock import CLOCK
from tests.script_model import deadline
from tests.services.deaths import counting, die_at
from tests.services.knowledge.killable import Death, Killed
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

from stint.domain.errors import StoreUnavailable
from stint.domain.tasks import MARK_DELAY
from stint.services.knowledge.usage import REQUEUE_SECONDS

LEASED = 11
"""A moment of an ingestion at which its worker has the lease."""


async def killed(cloud: Cloud, knowledge: KnowledgeFixture) -> tuple[str, str]:
    """Return a store and its file, whose worker was killed. Its message is invisible for 15 minutes."""
    store_id = await knowledge.create()
    file_id = await knowledge.add(store_id, "Llamas live in Peru.")
    with pytest.raises(Killed):
        await KnowledgeFixture(cloud, knowledge.tenant, knowledge, Death(LEASED)).work()
    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
    assert found.held
    return store_id, file_id


@pytest.mark.parametrize("polled", ["store", "file"])
async def test_a_poll_continues_the_file_of_a_killed_worker_after_its_lease(
    cloud: Cloud, knowledge: KnowledgeFixture, polled: str
) -> None:
    store_id, file_id = await killed(cloud, knowledge)

    async def poll() -> None:
        reading = knowledge.stores.get(store_id) if polled == "store" else knowledge.documents.get(store_id, file_id)
        assert (await reading).status == "in_progress"

    await poll()
    assert knowledge.queue.ingestions == []
    CLOCK.move(LEASE_SECONDS + 1)
    for _ in range(3):
        await poll()

    assert len(knowledge.queue.ingestions) == 1
    await knowledge.work()
    assert await knowledge.find(store_id, "llamas") == ["Llamas live in Peru."]


async def test_a_task_that_was_lost_again_is_sent_after_the_usual_time(
    cloud: Cloud, knowledge: KnowledgeFixture
) -> None:
    store_id, _ = await killed(cloud, knowledge)
    with CLOCK.stop():
        CLOCK.move(LEASE_SECONDS + 1)
        await knowledge.stores.get(store_id)
        knowledge.queue.ingestions.clear()

        CLOCK.move(REQUEUE_SECONDS - 1)
        await knowledge.stores.get(store_id)
        assert knowledge.queue.ingestions == []
        CLOCK.move(1)
        await knowledge.stores.get(store_id)
        assert len(knowledge.queue.ingestions) == 1


@pytest.fixture
async def stored(knowledge: KnowledgeFixture) -> tuple[str, str]:
    """Return a store and its file, whose request died after the file was stored."""
    store_id = await knowledge.create()
    file_id = await knowledge.add(store_id, "Llamas live in Peru.")
    knowledge.queue.ingestions.clear()
    return store_id, file_id


async def handle_early(knowledge: KnowledgeFixture) -> None:
    """Handle the tasks that were sent before their documents were stored."""
    for task in knowledge.queue.early:
        assert (task.delay_seconds, task.unstarted_only) == (MARK_DELAY, True)
        await knowledge.ingestion.handle_task(task, deadline(30))


async def test_a_file_whose_request_died_after_the_transaction_is_ingested_after_a_minute(
    knowledge: KnowledgeFixture, stored: tuple[str, str]
) -> None:
    await handle_early(knowledge)

    assert await knowledge.find(stored[0], "llamas") == ["Llamas live in Peru."]
    assert len(knowledge.queue.early) == 1


@pytest.mark.parametrize("operation", ["TransactWriteItems", "BatchGetItem"])
async def test_a_file_is_found_or_never_stored_whichever_call_its_request_died_at(
    cloud: Cloud, knowledge: KnowledgeFixture, operation: str
) -> None:
    store_id = await knowledge.create()
    file_id = await knowledge.upload("Llamas live in Peru.")
    with counting(cloud) as seen:
        await knowledge.attach(store_id, file_id)
    await knowledge.work()
    for call in range(seen.count(operation)):
        other = await knowledge.upload("Bees dance.")
        await die_at(cloud, operation, call, lambda other=other: knowledge.attach(store_id, other))  # type: ignore[misc]
        knowledge.queue.ingestions.clear()

        await handle_early(knowledge)

        found = await cloud.store.vector_store_documents.find(knowledge.tenant, store_id, [other])
        assert [each.status for each in found.values()] in (["completed"], [])


async def test_the_early_task_of_a_file_that_a_worker_has_begun_does_nothing(
    cloud: Cloud, knowledge: KnowledgeFixture
) -> None:
    store_id, file_id = await killed(cloud, knowledge)

    await handle_early(knowledge)

    found = await cloud.store.vector_store_documents.get(knowledge.tenant, store_id, file_id)
    assert (found.status, found.held) == ("in_progress", True)


async def test_the_early_task_of_an_ingested_file_costs_one_read(
    cloud: Cloud, knowledge: KnowledgeFixture, stored: tuple[str, str]
) -> None:
    await handle_early(knowledge)
    cloud.forget()

    await handle_early(knowledge)

    assert cloud.calls == {"BatchGetItem": 1}


async def test_a_file_that_stays_as_it_is_sends_no_early_task(
    knowledge: KnowledgeFixture, stored: tuple[str, str]
) -> None:
    await handle_early(knowledge)

    await knowledge.attach(*stored)

    assert len(knowledge.queue.early) == 1


async def test_a_file_is_not_stored_without_its_early_task(cloud: Cloud, knowledge: KnowledgeFixture) -> None:
    store_id, file_id = await knowledge.create(), await knowledge.upload("Llamas live in Peru.")
    knowledge.queue.refuses = True

    with pytest.raises(StoreUnavailable):
        await knowledge.attach(store_id, file_id)

    assert await cloud.store.vector_store_documents.find(knowledge.tenant, store_id, [file_id]) == {}
