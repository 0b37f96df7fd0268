"""Ingestions whose worker died, or whose task was lost, and that a poll sends again."""

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.killable import Death, Killed
from tests.services.knowledge.knowledge_fixture import LEASE_SECONDS, KnowledgeFixture
from tests.store.conftest import Cloud

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
