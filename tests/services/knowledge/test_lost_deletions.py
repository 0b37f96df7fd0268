"""Deletions whose process died, or whose task the queue did not accept."""

import pytest
from tests.clock import CLOCK
from tests.services.knowledge.knowledge_fixture import KnowledgeFixture
from tests.services.knowledge.list_index import ListIndex

from stint.domain.errors import NotFound, StoreUnavailable
from stint.services.knowledge.usage import REQUEUE_SECONDS


async def refuse(*_: object) -> None:
    raise StoreUnavailable("The index is overloaded.")


async def half_deleted(knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Return a store and its file, whose deletion failed when the index did not answer, and whose task was lost."""
    store_id = await knowledge.create("Llamas live in Peru.")
    file_id = await knowledge.file_of(store_id)
    with monkeypatch.context() as outage:
        outage.setattr(ListIndex, "delete", refuse)
        await knowledge.documents.delete(store_id, file_id)
    knowledge.queue.delayed.clear()
    assert knowledge.index.keys
    return store_id, file_id


async def test_a_repeated_request_finishes_the_deletion_of_a_file(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id, file_id = await half_deleted(knowledge, monkeypatch)

    assert (await knowledge.documents.delete(store_id, file_id)).deleted

    assert knowledge.index.keys == knowledge.cloud.blobs(knowledge.tenant) == []
    with pytest.raises(NotFound):
        await knowledge.documents.delete(store_id, file_id)


async def test_a_read_of_the_store_sends_the_deletion_of_a_file_again(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id, _ = await half_deleted(knowledge, monkeypatch)
    assert (await knowledge.stores.get(store_id)).file_counts.total == 0
    assert knowledge.queue.deletions == []

    CLOCK.move(REQUEUE_SECONDS)
    for _ in range(3):
        assert (await knowledge.stores.get(store_id)).file_counts.total == 0
    assert len(knowledge.queue.deletions) == 1
    await knowledge.finish_deletions()

    assert knowledge.index.keys == knowledge.cloud.blobs(knowledge.tenant) == []
    knowledge.cloud.forget()
    await knowledge.stores.get(store_id)
    await knowledge.stores.get(store_id)
    assert knowledge.cloud.calls["Query"] == 1


async def test_a_deletion_is_sent_until_the_queue_accepts_it(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id, _ = await half_deleted(knowledge, monkeypatch)
    CLOCK.move(REQUEUE_SECONDS)
    knowledge.queue.refuses = True
    with pytest.raises(StoreUnavailable):
        await knowledge.stores.get(store_id)
    knowledge.queue.refuses = False

    await knowledge.stores.get(store_id)

    assert len(knowledge.queue.deletions) == 1


async def test_a_repeated_request_finishes_the_deletion_of_a_store(
    knowledge: KnowledgeFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_id = await knowledge.create("Llamas live in Peru.")
    with monkeypatch.context() as outage:
        outage.setattr(ListIndex, "drop", refuse)
        await knowledge.stores.delete(store_id)

    assert (await knowledge.stores.delete(store_id)).deleted

    assert knowledge.rest() == []
    with pytest.raises(NotFound):
        await knowledge.stores.delete(store_id)


async def test_nothing_is_deleted_while_the_queue_accepts_no_task(knowledge: KnowledgeFixture) -> None:
    store_id = await knowledge.create("Llamas live in Peru.")
    knowledge.queue.refuses = True

    with pytest.raises(StoreUnavailable):
        await knowledge.stores.delete(store_id)

    assert (await knowledge.stores.get(store_id)).file_counts.completed == 1
